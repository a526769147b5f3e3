package script

import (
	"testing"

	"plumb/internal/draw/choice"
)

// TestModulesAroundOneFlowsTests: what they bring into a test file.
func TestModulesAroundOneFlowsTests(t *testing.T) {
	for name, src := range map[string]string{
		"star":          "from oneflow.test_utils.automated_test_util import *\n",
		"old star":      "from automated_test_util import *\n",
		"single client": "from oneflow.compatible.single_client.test_utils.automated_test_util.generators import *\n",
		"by name":       "import os, unittest\nimport numpy as np\nimport oneflow as flow\nfrom collections import OrderedDict\nfrom test_util import GenArgList, GenArgDict, GenCartesianProduct, Array2Numpy, FlattenArray, Index2Coordinate, type_name_to_flow_type, type_name_to_np_type\nfrom random import shuffle, randint\nfrom oneflow.nn.modules.broadcast_ops import broadcast_shapes\nfrom oneflow.test_utils.automated_test_util.torch_flow_dual_object import autotest, random_tensor\n",
	} {
		f := load(t, src+`
rank = int(os.getenv("RANK"))

class TestX(flow.unittest.TestCase):
    @unittest.skipIf(os.getenv("ONEFLOW_TEST_CPU_ONLY"), "only on CUDA")
    @autotest(n=1)
    def test_x(test_case):
        world = int(os.environ["WORLD_SIZE"])
        assert (rank, world, "RANK" in os.environ, "HOME" in os.environ) == (0, 1, True, False)
        assert os.environ.get("HOME", 3) == 3 and os.getenv("PATH") is None
        order = [0, 1]
        shuffle(order)
        assert sorted(order) == [0, 1] and randint(1, 1) == 1
        lists = OrderedDict()
        lists["fun"], lists["k"] = [abs], [1, 2]
        assert [arg[0](*arg[1:]) for arg in GenArgList(lists)] == [1, 2]
        assert [arg["k"] for arg in GenArgDict(lists)] == [1, 2] and len(list(GenCartesianProduct([[1], [2, 3]]))) == 2
        a = Array2Numpy(FlattenArray(np.arange(6)), (2, 3))
        assert a.shape == (2, 3) and Index2Coordinate(5, a.shape) == [1, 2]
        assert type_name_to_flow_type["float32"] is flow.float32 and type_name_to_np_type["int64"] == np.int64
        test_case.assertTrue(callable(broadcast_shapes))
        return torch.relu(random_tensor(ndim=2))
`)
		if len(f.Tests()) != 1 || f.Tests()[0].Skip != "" || len(f.Notes) != 0 {
			t.Fatalf("%s: %d tests, notes %v", name, len(f.Tests()), f.Notes)
		}
		if _, err := f.Tests()[0].Draw(choice.New(1), Env{Signatures: toySigs}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCoordinates: the functions of utilities.py are inverse to each other.
func TestCoordinates(t *testing.T) {
	f := load(t, "from test_util import Index2Coordinate, Coordinate2Index\nfrom torch.nn.modules.utils import _pair, _single, _reverse_repeat_tuple\n"+body(`for i in range(24):
    assert Coordinate2Index(Index2Coordinate(i, (2, 3, 4)), (2, 3, 4)) == i
assert (_pair(3), _single(2), _pair([1, 2]), _reverse_repeat_tuple((1, 2), 2)) == ((3, 3), (2,), (1, 2), (2, 2, 1, 1))
return torch.relu(random_tensor())`))
	if _, err := f.Tests()[0].Draw(choice.New(1), Env{Signatures: toySigs}); err != nil {
		t.Error(err)
	}
}
