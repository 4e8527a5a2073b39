"""Real OpenPGP keys of gpg, in a home of its own, for tests."""

import subprocess
from pathlib import Path


class GpgHome:
    """A home of gpg with keys that have no passphrase."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path, self.options = path, options
        path.mkdir(mode=0o700)

    def run(self, *argv: str, data: bytes | None = None) -> bytes:
        """The output of gpg; CalledProcessError if it fails."""
        command = ["gpg", "--batch", "--quiet", "--homedir", str(self.path), "--pinentry-mode", "loopback"]
        command += [*self.options, *argv]
        return subprocess.run(
            command, check=True, capture_output=True, input=data if data is not None else b"", timeout=120
        ).stdout

    def generate(self, name: str, kind: str = "rsa2048") -> str:
        """Generate a key that signs; return its fingerprint."""
        self.run("--passphrase", "", "--quick-generate-key", f"{name} <{name}@example.org>", kind, "sign", "never")
        return self.fingerprints(name)[0]

    def add_subkey(self, fingerprint: str, kind: str = "rsa2048", usage: str = "encr") -> str:
        """Add a subkey; return its fingerprint."""
        self.run("--passphrase", "", "--quick-add-key", fingerprint, kind, usage, "never")
        return self.fingerprints(fingerprint)[-1]

    def fingerprints(self, name: str) -> list[str]:
        """Fingerprints of a key and its subkeys."""
        listed = self.run("--with-colons", "--list-keys", name).decode()
        return [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr")]

    def export(self, *argv: str) -> bytes:
        """Export public keys."""
        return self.run("--export", *argv)

    def close(self) -> None:
        """End the agents that gpg started."""
        subprocess.run(["gpgconf", "--homedir", str(self.path), "--kill", "all"], check=False)
