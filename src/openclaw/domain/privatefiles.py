"""Which files never leave with a reply, told by where they lie and by what they hold (pure).

A workspace may be somebody's home directory, so lying inside it says little: the gateway's own state,
keys and files that are made for passwords stay where they are. Text is judged by the same rule that
masks what tools read (TRX-11). Reading files, and finding out where a path really leads, is done
elsewhere.
"""

from __future__ import annotations

from openclaw.domain.redaction import mask_machine_text

# Real names, lower-cased.
_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"))
_NAMES = frozenset(
    (".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd",
     ".vault-token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk")
)  # fmt: skip
_ENDINGS = (".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
_OWN_NAMES = ("openclaw.json", "openclaw.sqlite", "client.sqlite")
_SHOWN_EXAMPLES = (".example", ".sample", ".template", ".dist")

_SLICE_CHARS = 65_536
# Longer than a secret that matters; what a slice cuts in two, the next one has whole.
_OVERLAP_CHARS = 8_192
_LOOKED_AT_BYTES = 8_192

CONFIGURATION = "it is the configuration of the gateway"
STATE = "it belongs to the state of the gateway"
FOR_SECRETS = "files of this name hold passwords or keys"
HOLDS_SECRET = "it holds a secret, such as a key or a token"


def private_place(path: str, *, workspace: str, state_dir: str, config_path: str) -> str | None:
    """Why a file may not leave because of where it lies; None when it may.

    All paths are absolute and real, without links; `path` lies below `workspace`. A workspace below
    the state directory is where files of an agent belong; one around it does not open it.
    """
    name = path.rpartition("/")[2].lower()
    if path == config_path or (config_path and path.startswith(f"{config_path}.")):
        return CONFIGURATION
    if _is_below(path, state_dir) and not _is_below(workspace, state_dir):
        return STATE
    if name.startswith(_OWN_NAMES):
        return STATE
    folders = path[len(workspace) :].lower().split("/")[:-1]
    is_environment = name.startswith(".env.") and not name.endswith(_SHOWN_EXAMPLES)
    is_made_for_secrets = name in _NAMES or name.endswith(_ENDINGS) or is_environment
    return FOR_SECRETS if is_made_for_secrets or not _FOLDERS.isdisjoint(folders) else None


def _is_below(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(f"{folder.rstrip('/')}/")


def private_content(data: bytes, known_secrets: frozenset[str]) -> str | None:
    """Why a file may not leave because of what it holds; None when it may.

    In bytes that are no text only the known secrets are looked for.
    """
    if b"\0" in data[:_LOOKED_AT_BYTES]:
        return HOLDS_SECRET if any(secret.encode() in data for secret in known_secrets) else None
    text = data.decode("utf-8", "replace")
    # In slices: one search through all of it would hold up everybody else.
    for start in range(0, len(text), _SLICE_CHARS):
        piece = text[start : start + _SLICE_CHARS + _OVERLAP_CHARS]
        if mask_machine_text(piece, known_secrets).count:
            return HOLDS_SECRET
    return None
