"""Modules of the shape of DCGM's bindings: GPUs 0 and 3, a diagnostic that finds an XID error on GPU 3."""

from __future__ import annotations

#: Modules as DCGM 4 ships them, as far as the port uses them; structures by ctypes, as there.
STRUCTS = """
from ctypes import Structure, c_char, c_int32, c_ubyte, c_uint, c_ushort
DCGM_OPERATION_MODE_AUTO = 1
DCGM_GROUP_EMPTY = 1
DCGM_DIAG_LVL_SHORT, DCGM_DIAG_LVL_MED, DCGM_DIAG_LVL_LONG, DCGM_DIAG_LVL_XLONG = 10, 20, 30, 40
DCGM_ST_OK = 0
DCGM_ST_IN_USE = -34
DCGM_ST_CONNECTION_NOT_VALID = -21
class DCGMError(Exception):
    def __init__(self, value):
        self.value = value
    def __str__(self):
        return "The connection to the host engine is not valid any longer"
class Pair(Structure):
    _fields_ = [("entityGroupId", c_uint), ("entityId", c_uint)]
class DiagError(Structure):
    _fields_ = [("entity", Pair), ("code", c_uint), ("msg", c_char * 512), ("testId", c_uint)]
class EntityResult(Structure):
    _fields_ = [("entity", Pair), ("result", c_int32), ("testId", c_uint)]
class DiagnosticRun(Structure):
    _fields_ = [
        ("name", c_char * 32), ("result", c_uint),
        ("numResults", c_ushort), ("resultIndices", c_ushort * 64),
    ]
class Response(Structure):
    _fields_ = [
        ("numTests", c_ubyte), ("numErrors", c_ubyte), ("numResults", c_ushort),
        ("tests", DiagnosticRun * 4), ("errors", DiagError * 4), ("results", EntityResult * 8),
    ]
"""
AGENT = """
calls = []
def dcgmStopDiagnostic(handle):
    calls.append(("stop", handle))
"""
PYDCGM = """
import dcgm_agent, dcgm_structs
calls = dcgm_agent.calls
class _Identifiers:
    def __init__(self, number):
        self.uuid = b"GPU-%d\\0\\0junk" % number
class _Attributes:
    def __init__(self, number):
        self.identifiers = _Identifiers(number)
class _Discovery:
    def GetAllSupportedGpuIds(self):
        return [0, 3]
    def GetGpuAttributes(self, number):
        return _Attributes(number)
class _System:
    discovery = _Discovery()
class DcgmHandle:
    handle = 77
    def __init__(self, handle=None, ipAddress=None, opMode=None, timeoutMs=0):
        calls.append(("connect", ipAddress, opMode))
        if ipAddress.startswith("bad"):
            raise dcgm_structs.DCGMError(-21)
    def GetSystem(self):
        return _System()
    def Shutdown(self):
        calls.append(("shutdown",))
class _Action:
    def RunDiagnostic(self, level):
        calls.append(("run", level))
        if level == 40:
            raise dcgm_structs.DCGMError(-34)
        if level == 10:
            raise TypeError("of a kind")
        made = dcgm_structs.Response(numTests=1, numErrors=1, numResults=2)
        made.tests[0].name, made.tests[0].result, made.tests[0].numResults = b"memory", 3, 2
        made.tests[0].resultIndices[1] = 1
        made.results[0].entity.entityGroupId, made.results[0].entity.entityId = 1, 3
        made.results[0].result = 3
        made.results[1].entity.entityGroupId, made.results[1].entity.entityId = 7, 3
        made.errors[0].entity.entityGroupId, made.errors[0].entity.entityId = 1, 3
        made.errors[0].code, made.errors[0].msg = 101, "caf\\u00e9".encode()
        return made
class DcgmGroup:
    def __init__(self, handle, groupName=None, groupType=None):
        calls.append(("group", groupName, groupType))
        self.action = _Action()
    def AddGpu(self, number):
        calls.append(("add", number))
    def Delete(self):
        calls.append(("delete",))
        raise dcgm_structs.DCGMError(-21)
"""
MODULES = {
    "dcgm_structs": STRUCTS,
    "dcgm_agent": AGENT,
    "pydcgm": PYDCGM,
    "dcgm_errors": "DCGM_FR_XID_ERROR = 101\nDCGM_FR_XID_ERROR_MSG = 'text'\n",
    "dcgm_fields": "DCGM_FE_GPU = 1\n",
}
