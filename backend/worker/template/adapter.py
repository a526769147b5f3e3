"""NAME as a subject of Plumb. What it does otherwise than PyTorch is data: NAME.json.

Where its API is not PyTorch's, say own = True, and override more of
plumb_subject.Adapter: each method there is a few lines that say what is asked
(docs/subject.md, "an interface of its own").
"""

import plumb_subject
import MODULE


class NAMEAdapter(plumb_subject.Adapter):
    name, version = "NAME", getattr(MODULE, "__version__", "")
    root, tensor_class = MODULE, MODULE.Tensor
    module_class = MODULE.nn.Module if hasattr(MODULE, "nn") else None
    table = plumb_subject.table("NAME.json")
    # Texts of exceptions which say that something is not there: what they end is
    # unsupported, and no finding. A text that is too wide hides mistakes of this file.
    gaps = ("not implemented", "not supported", "unexpected keyword argument")


adapter = NAMEAdapter
