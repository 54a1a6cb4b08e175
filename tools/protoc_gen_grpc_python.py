"""A protoc plugin for buf around the grpc_python generator, which grpcio-tools builds into its protoc."""

import sys
import tempfile
from pathlib import Path

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc


def generate(request: CodeGeneratorRequest) -> CodeGeneratorResponse:
    """Return the `_pb2_grpc.py` files of the requested protos that define services."""
    with_services = {proto.name for proto in request.proto_file if proto.service}
    wanted = [name for name in request.file_to_generate if name in with_services]
    response = CodeGeneratorResponse(supported_features=CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL)
    if not wanted:
        return response
    with tempfile.TemporaryDirectory() as scratch:
        descriptors, out = Path(scratch, "descriptors"), Path(scratch, "out")
        descriptors.write_bytes(FileDescriptorSet(file=request.proto_file).SerializeToString())
        out.mkdir()
        status = protoc.main(
            ["protoc", f"--descriptor_set_in={descriptors}", f"--grpc_python_out={out}", *wanted]
        )
        if status != 0:
            return CodeGeneratorResponse(error=f"protoc --grpc_python_out ended with status {status}")
        for path in sorted(out.rglob("*.py")):
            response.file.add(name=path.relative_to(out).as_posix(), content=path.read_text())
    return response


if __name__ == "__main__":
    response = generate(CodeGeneratorRequest.FromString(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(response.SerializeToString())
