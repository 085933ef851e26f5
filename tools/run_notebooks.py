"""Run the notebooks of examples/ and keep their outputs: `python tools/run_notebooks.py [NAME]`.

It needs the extra "notebooks". The files say nothing of the machine that ran them.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(path):
    """Run one notebook from an empty state, and write it back with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, kernel_name="python3", record_timing=False).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [tidy(each) for each in cell.outputs if not is_bar(each)]
    notebook.metadata.language_info = {"name": "python"}  # not the version of this machine
    nbformat.write(notebook, path)


def is_bar(output):
    """Is it a progress bar, which begins its line anew?"""
    return output.output_type == "stream" and output.text.startswith("\r")


def tidy(output):
    """Warnings without the temporary file that the cell was."""
    if output.output_type == "stream":
        output.text = re.sub(r"^/\S+?:\d+: (?=\w+Warning)", "", output.text)
    return output


def main(names):
    """Those that are named, or all."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        if not names or path.stem in names:
            run(path)
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
