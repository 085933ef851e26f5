"""Our fits behind the signatures of other libraries: `implicit`, and LensKit's pipelines."""
