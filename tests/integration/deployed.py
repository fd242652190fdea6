"""Reads the files of `deploy/` and starts what they say, in the place of systemd, Docker Compose and nginx's package.

Everything is started as it is written, but for what a test can't have: it takes other ports, its own folders instead of
the system's, and 127.0.0.1 instead of the names of containers. What is replaced is passed to `Command.moved`.
"""

import base64
import datetime
import hashlib
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.integration.debian_packages import find_program
from tests.integration.serving import until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD = DEPLOY / "grafana" / "tipbench.json"
BENCH, RECOMMEND = "bench.example.com", "recommend.example.com"
_PROGRAMS = Path(sys.executable).parent
_STOP_S = 20.0  # as units and compose say


class Command(NamedTuple):
    """What is started, in which environment."""

    words: tuple[str, ...]
    environment: dict[str, str]

    def moved(self, moved: Mapping[str, str]) -> "Command":
        """Return the command with other addresses and folders."""
        words = tuple(_replaced(word, moved) for word in self.words)
        return Command(words, {name: _replaced(value, moved) for name, value in self.environment.items()})

    @contextmanager
    def running(self, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
        """Start it with its own environment alone, and stop it as systemd and Docker do."""
        with log.open("wb") as out:
            process = subprocess.Popen(
                self.words,
                env=self._full_environment(),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        try:
            yield process
        finally:
            process.terminate()
            status = process.wait(_STOP_S)
        logged = log.read_text(errors="replace")
        assert status in (0, -15), f"{self.words} ended with {status}: {logged[-3000:]}"
        assert "Traceback" not in logged, logged

    def succeeds(self) -> bool:
        return (
            subprocess.run(self.words, env=self._full_environment(), capture_output=True, check=False).returncode == 0
        )

    def _full_environment(self) -> dict[str, str]:
        own = {"PATH": f"{_PROGRAMS}:/usr/bin:/bin", "OMP_THREAD_LIMIT": "1", "PYTHONUNBUFFERED": "1"}
        return {**own, **self.environment}


def _replaced(text: str, moved: Mapping[str, str]) -> str:
    for old, new in moved.items():
        text = text.replace(old, new)
    return text


def new_secrets(folder: Path) -> dict[str, str]:
    """Make the secret file by the command in docs/production.md, and return what it holds."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "production.md").read_text(encoding="utf-8"), re.DOTALL)
    (script,) = [block for block in blocks if "openssl rand" in block]
    subprocess.run(["sh", "-euc", script.replace("cd deploy\n", "")], cwd=folder, check=True)
    assert (folder / ".env").stat().st_mode & 0o777 == 0o600
    return env_file((folder / ".env").read_text())


def env_file(text: str) -> dict[str, str]:
    """Parse NAME=VALUE lines, as systemd and Compose read them if there is nothing to quote."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def read_unit(path: Path) -> dict[str, list[str]]:
    """Return the values of each key of a unit, in order; the names of its sections don't matter here."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line and line[0] not in "#;[":
            key, _, value = line.partition("=")
            found.setdefault(key.strip(), []).append(value.strip())
    return found


def unit_command(path: Path, secrets: Mapping[str, str]) -> Command:
    """Return what systemd would start; `secrets` is the content of its EnvironmentFile."""
    unit = read_unit(path)
    assert unit["EnvironmentFile"] == ["/etc/tipbench/tipbench.env"]
    environment = {**env_file("\n".join(unit.get("Environment", ()))), **secrets}
    for name in " ".join(unit.get("UnsetEnvironment", ())).split():
        environment.pop(name, None)
    (start,) = unit["ExecStart"]
    return Command(tuple(shlex.split(start)), environment)


class Compose:
    """compose.yaml with the variables of its secret file."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._services = read_compose()["services"]

    def command(self, service: str) -> Command:
        return self._command(service, self._services[service]["command"])

    def health(self, service: str) -> Command:
        kind, *words = self._services[service]["healthcheck"]["test"]
        assert kind == "CMD"
        return self._command(service, words)

    def _command(self, service: str, words: Sequence[str]) -> Command:
        given = self._services[service].get("environment", {})
        return Command(tuple(words), {name: self._interpolated(value) for name, value in given.items()})

    def _interpolated(self, text: str) -> str:
        return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: self._variables[found[1]], text)


def read_compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Proxy:
    """nginx with deploy/nginx.conf, a certificate of its own, and other ports."""

    def __init__(self, folder: Path, serve_port: int, recommend_port: int) -> None:
        self.port, self.plain_port = free_port(), free_port()
        self.certificate = folder / f"{BENCH}.pem"
        self._folder = folder
        self.key_digest = _make_certificate(folder, [BENCH, RECOMMEND])
        moved = {
            "listen 443 ": f"listen 127.0.0.1:{self.port} ",
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "127.0.0.1:8765": f"127.0.0.1:{serve_port}",
            "127.0.0.1:8766": f"127.0.0.1:{recommend_port}",
            "/etc/ssl/tipbench": str(folder),
        }
        site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
        assert all(old in site for old in moved)
        (folder / "site.conf").write_text(_replaced(site, moved))
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        (folder / "nginx.conf").write_text(
            f"daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{folders}include {folder}/site.conf;\n}}\n"
        )

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        command = Command(
            (str(find_program("nginx", "nginx")), "-p", str(self._folder), "-c", str(self._folder / "nginx.conf")), {}
        )
        with command.running(self._folder / "nginx.log") as process:
            until(lambda: process.poll() is not None or answers(self.port), every_s=0.02)
            assert process.poll() is None, (self._folder / "nginx.log").read_text()
            yield self

    def browser_flags(self) -> list[str]:
        """Return flags with which a browser finds the names here, and trusts this certificate and no other."""
        names = ",".join(f"MAP {name}:443 127.0.0.1:{self.port}" for name in (BENCH, RECOMMEND))
        return [f"--host-resolver-rules={names}", f"--ignore-certificate-errors-spki-list={self.key_digest}"]


def answers(port: int) -> bool:
    """Tell whether anybody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _make_certificate(folder: Path, names: Sequence[str]) -> str:
    """Write a certificate for the names, signed by itself, once for each; return the digest of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for name in names:
        (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(secret)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()
