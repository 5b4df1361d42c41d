"""Saved files and folders: written whole or not at all, verified when read, never code."""

from ansatz.storage.disk import recover_folder as recover_folder
from ansatz.storage.run_folder import Checkpoints as Checkpoints
from ansatz.storage.disk import write_file as write_file
from ansatz.storage.folder import check_target as check_target
from ansatz.storage.folder import write_folder as write_folder
from ansatz.storage.json_file import encode_json as encode_json
from ansatz.storage.json_file import read_json as read_json
from ansatz.storage.json_file import write_json as write_json
from ansatz.storage.run_folder import RunLock as RunLock
from ansatz.storage.folder import FileEntry as FileEntry
from ansatz.storage.folder import Manifest as Manifest
from ansatz.storage.tensors import pack_state as pack_state
from ansatz.storage.tensors import unpack_state as unpack_state
from ansatz.storage.tensors import encode_tensors as encode_tensors
from ansatz.storage.tensors import load_into as load_into
from ansatz.storage.tensors import read_tensors as read_tensors
from ansatz.storage.tensors import write_tensors as write_tensors
from ansatz.storage.folder import verify_folder as verify_folder
