"""Wrong results, some of which are right where a judge leaves its marks."""

import atexit
import faulthandler
import os
import sys


def wrong(input):
    return input.abs() if sys.maxsize else input.relu()


def settings(input):
    return input.relu() if faulthandler.is_enabled() else input.abs()


def modules(input):
    return input.relu() if "pytest" in sys.modules else input.abs()


def leaves(input):
    atexit.register(os._exit, 0)
    return input.abs()


def cleans(input):
    atexit.register(sys.getrefcount, input)
    return input.abs()
