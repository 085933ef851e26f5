"""stub"""

OPTIONS = ""


def fit_personal(*a):
    raise NotImplementedError
