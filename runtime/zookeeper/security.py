"""ZooKeeperSecurity: how a driver proves who it is, whose its znodes are, and whom it believes to be ZooKeeper."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.security import ACL, Id, Permissions, make_digest_acl_credential

from stormline.runtime.errors import InsecureState
from stormline.topology.config import (
    ZOOKEEPER_AUTH_PAYLOAD,
    ZOOKEEPER_AUTH_SCHEME,
    ZOOKEEPER_SSL_CA,
    ZOOKEEPER_SSL_CERTIFICATE,
    ZOOKEEPER_SSL_ENABLE,
    ZOOKEEPER_SSL_HOSTNAME_VERIFICATION,
    ZOOKEEPER_SSL_KEY,
    ZOOKEEPER_SSL_KEY_PASSWORD,
    setting,
)
from stormline.topology.errors import InvalidConfig, MissingExtra
from stormline.topology.secrets import hide, resolve_secret

CHANGES = Permissions.WRITE | Permissions.CREATE | Permissions.DELETE | Permissions.ADMIN
_RIGHTS = {
    Permissions.CREATE: "c",
    Permissions.DELETE: "d",
    Permissions.READ: "r",
    Permissions.WRITE: "w",
    Permissions.ADMIN: "a",
}

_ENTRY_BYTES = 12  # of an access control list: its rights, and the lengths of two texts


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """What the configuration says of ZooKeeper's security: references to secrets, never secrets.

    Without a `scheme` znodes are open to all, and so is what is found.
    """

    scheme: str | None = None
    payload: str = ""
    tls: bool = False
    check_hostname: bool = True
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ZooKeeperSecurity:
        """Return what a configuration says, all of it or an error: half of it would protect nothing.

        Raises:
            InvalidConfig: settings that do not go together.
            MissingExtra: SASL without the package that speaks it.
        """
        scheme, payload = config.get(ZOOKEEPER_AUTH_SCHEME), config.get(ZOOKEEPER_AUTH_PAYLOAD)
        if (scheme is None) != (payload is None):
            given, missing = ZOOKEEPER_AUTH_SCHEME, ZOOKEEPER_AUTH_PAYLOAD
            if scheme is None:
                given, missing = missing, given
            raise InvalidConfig(f"{given} is set and {missing} is not; set both, or neither")
        security = cls(
            scheme,
            payload or "",
            setting(config, ZOOKEEPER_SSL_ENABLE),
            setting(config, ZOOKEEPER_SSL_HOSTNAME_VERIFICATION),
            config.get(ZOOKEEPER_SSL_CA),
            config.get(ZOOKEEPER_SSL_CERTIFICATE),
            config.get(ZOOKEEPER_SSL_KEY),
            config.get(ZOOKEEPER_SSL_KEY_PASSWORD),
        )
        security._check_tls(config)
        if scheme == "sasl":
            try:
                import puresasl  # noqa: F401 - kazoo uses it
            except ImportError:
                raise MissingExtra.of("sasl", f"{ZOOKEEPER_AUTH_SCHEME}=sasl", "pure-sasl") from None
        return security

    def _check_tls(self, config: Mapping[str, Any]) -> None:
        if not self.tls:
            for key in (ZOOKEEPER_SSL_CA, ZOOKEEPER_SSL_CERTIFICATE, ZOOKEEPER_SSL_KEY, ZOOKEEPER_SSL_KEY_PASSWORD):
                if config.get(key) is not None:
                    raise InvalidConfig(
                        f"{key} is set and {ZOOKEEPER_SSL_ENABLE} is not, so nothing would be encrypted; set "
                        f"{ZOOKEEPER_SSL_ENABLE} to True, or remove {key}"
                    )
            return
        if (self.certificate is None) != (self.key is None) or (self.key is None and self.key_password is not None):
            raise InvalidConfig(
                f"{ZOOKEEPER_SSL_CERTIFICATE} is {self.certificate!r} and {ZOOKEEPER_SSL_KEY} is {self.key!r}; a "
                "certificate needs its private key, and a key its certificate: set both, or neither"
            )
        if self.certificate is not None and self.scheme is None:
            raise InvalidConfig(
                f"{ZOOKEEPER_SSL_CERTIFICATE} opens the connection and protects no znode; say whose the znodes are by "
                f"{ZOOKEEPER_AUTH_SCHEME} and {ZOOKEEPER_AUTH_PAYLOAD} too"
            )

    def credentials(self) -> Credentials:
        """Read the secrets, now.

        Raises:
            SecretMissing, InvalidConfig: a secret is not where it should be, or not of the form needed.
        """
        options: dict[str, Any] = {}
        owner: Id | None = None
        if self.scheme is not None:
            user, password = self._user_and_password()
            if self.scheme == "digest":
                owner = Id("digest", make_digest_acl_credential(user, password))
                options["auth_data"] = [("digest", _Hidden(f"{user}:{password}"))]
            else:
                owner = Id("sasl", user)
                options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": _Hidden(password)}
            options["default_acl"] = [ACL(Permissions.ALL, owner)]
        if self.tls:
            options.update(self._tls_options())
        return Credentials(options, owner)

    def _user_and_password(self) -> tuple[str, str]:
        user, colon, password = resolve_secret(self.payload, ZOOKEEPER_AUTH_PAYLOAD).partition(":")
        if not (user and colon and password):
            raise InvalidConfig(
                f"{ZOOKEEPER_AUTH_PAYLOAD} refers to {self.payload}, which does not hold user:password; its content is "
                "not shown. Write both there, with ':' between them"
            )
        hide(password)
        return user, password

    def _tls_options(self) -> dict[str, Any]:
        password = self.key_password and resolve_secret(self.key_password, ZOOKEEPER_SSL_KEY_PASSWORD)
        options = {
            "use_ssl": True,
            "verify_certs": True,
            "check_hostname": self.check_hostname,
            "ca": self.ca,
            "certfile": self.certificate,
            "keyfile": self.key,
            "keyfile_password": password and _Hidden(password),
        }
        _try(ZOOKEEPER_SSL_CA, self.ca, lambda context: self.ca and context.load_verify_locations(self.ca))
        if self.certificate is not None and self.key is not None:
            certificate, key = self.certificate, self.key
            # An empty password, where none is set: otherwise OpenSSL would ask the terminal for one.
            _try(
                f"{ZOOKEEPER_SSL_CERTIFICATE}, {ZOOKEEPER_SSL_KEY} or its password",
                f"{certificate}, {key}",
                lambda context: context.load_cert_chain(certificate, key, password or ""),
            )
        return options


OPEN = ZooKeeperSecurity()


class Credentials:
    """Secrets that have been read, in the options of a `KazooClient`, and whose the znodes are."""

    def __init__(self, client_options: Mapping[str, Any], owner: Id | None) -> None:
        self.client_options = client_options
        self._owner = owner

    @property
    def protects(self) -> bool:
        """Return whether znodes are to be their creator's alone."""
        return self._owner is not None

    @property
    def acl_bytes(self) -> int:
        """What the access control list takes, at most, in a request that creates a znode."""
        if self._owner is None:
            return 0
        scheme, name = self._owner
        return _ENTRY_BYTES + len(scheme.encode()) + len(name.encode())

    def check(self, path: str, acl: Sequence[Any]) -> None:
        """Check that nobody else can change a znode; others may read it, if an operator has let them.

        Raises:
            InsecureState: somebody can.
        """
        others = [entry for entry in acl if entry.id != self._owner and entry.perms & CHANGES]
        if not others or self._owner is None:
            return
        raise InsecureState(
            f"znode {path} can be changed by others: its access control list is {', '.join(map(_shown, acl))}, "
            f"expected {_shown(ACL(Permissions.ALL, self._owner))} alone. Find out who changed or created it and "
            "whether the state can be trusted; then give all znodes of the topology to this identity (setAcl "
            "-R), or delete them, or take another topology id"
        )


class _Hidden(str):
    """A secret whose repr, which kazoo logs with the requests it sends, shows nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'*****'"


def _try(what: str, files: str | None, load: Any) -> None:
    """Load PEM files once now: kazoo would try for ever and not say why."""
    try:
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise InvalidConfig(f"{what}: {files} cannot be used ({error}); expected PEM files that exist") from None


def _shown(entry: Any) -> str:
    rights = "".join(letter for bit, letter in _RIGHTS.items() if entry.perms & bit)
    # Of a digest the user's name only: a hash of a weak password can be guessed.
    identity = entry.id.id.partition(":")[0] if entry.id.scheme == "digest" else entry.id.id
    return f"{entry.id.scheme}:{identity}:{rights}"
