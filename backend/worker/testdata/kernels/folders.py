"""A fork of what has imported PyTorch's compiler writes to its own folders, as plumb_fork.py settles."""

import os
import sys
import tempfile
import types

import plumb_fork

own = tempfile.mkdtemp()
made = types.ModuleType("torch.made")
made.at, made.other = plumb_fork.FOLDER + "/cache", "/elsewhere"
sys.modules["torch.made"] = made
tempfile.tempdir = plumb_fork.FOLDER
os.environ["TMPDIR"] = own
plumb_fork.settle()
assert (made.at, made.other, tempfile.gettempdir()) == (own + "/cache", "/elsewhere", own), (vars(made), tempfile.gettempdir())
os.rmdir(own)
