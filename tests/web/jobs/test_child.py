"""What a process of the service does with its standard input."""

import subprocess
import sys

TEXT = """
import time
from pseudomallows.web.jobs import child
request = child.read_line()
child.end_with_the_service()
child.say({"heard": request["word"]})
time.sleep(60)
"""


def test_a_process_hears_a_request_answers_and_ends_with_the_service():
    command = [sys.executable, "-c", TEXT]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write('{"word": "tea"}\n')
        process.stdin.flush()
        assert process.stdout.readline() == '{"heard": "tea"}\n'
        assert process.poll() is None
        process.stdin.close()  # as when the service is killed
        assert process.wait(timeout=20) == 3
