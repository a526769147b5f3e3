#!PYTHON
"""NAME as a worker: plumb run --candidate ./NAME"""

import os

os.environ["PLUMB_WORKER_FRAMEWORK"] = "NAME"

import plumb_worker

plumb_worker.start()
