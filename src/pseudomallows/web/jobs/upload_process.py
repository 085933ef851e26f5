"""Take in a large file, in a process: ``python -m pseudomallows.web.jobs.upload_process``.

So it neither holds up the service nor takes its memory. The request comes as one line of JSON on
standard input; the answer is what the file holds. Then a second line, the number of the upload,
says to store it. When standard input ends, the service has gone, and so does this.
"""

import resource
from contextlib import suppress
from pathlib import Path

from ..errors import ServiceError, StoreError
from ..stores.open import open_store
from .child import end_with_the_service, let_requests_go_first, read_line, say
from .upload_file import UploadLimits, read_upload, store_parts

MEMORY = 2 * 10**9  # bytes for a file: twenty times the largest that the service takes
FIRST_TO_END = "1000"  # if memory is short, Linux ends this process, not the service


def main() -> int:
    """Read the request, then the file; store it once there is a number."""
    request = read_line()
    let_requests_go_first()
    _limit_memory()
    try:
        limits, known = UploadLimits(*request["limits"]), set(request["known"])
        clicks = read_upload(Path(request["path"]), limits, known)
        say({"counts": clicks.counts(), "warnings": clicks.warnings})
        upload = read_line()
        if upload is None:
            return 3
        end_with_the_service()
        store = open_store(request["store"])
        store.be_lazy()
        store_parts(store, upload, clicks)
        store.close()
        say({"stored": upload})
    except StoreError as error:
        say({"status": error.status, "error": error.words, "reason": error.reason})
    except ServiceError as error:
        say({"status": error.status, "error": error.words})
    except ValueError as error:  # the store cannot be opened
        say({"status": 503, "error": "the store has a problem; see the log", "reason": str(error)})
    except MemoryError:
        words = f"the file takes more than {MEMORY / 1e9:g} GB of memory to read: send it in parts"
        say({"status": 413, "error": words})
    return 0


def _limit_memory() -> None:
    """Of this process, above what the program itself takes."""
    with suppress(OSError, ValueError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_END)
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    raise SystemExit(main())
