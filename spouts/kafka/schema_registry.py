"""SchemaRegistry: where the schemas of records are kept, by their ids."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from stormline.spouts.kafka.errors import InvalidKafkaSpout, KafkaRefused, SchemaUnusable
from stormline.topology.errors import FailedException
from stormline.topology.secrets import is_reference, resolve_secret


@dataclass(frozen=True)
class SchemaRegistry:
    """A schema registry that is asked as Confluent's is: GET /schemas/ids/ID.

    Args:
        url (str): Where it is, http or https, without a user and a password.
        user (str): Who asks; empty: nobody in particular.
        password (str): A reference to the password, `env:NAME` or `file:PATH`.
        ca_file (str | None): The certificates of the authorities that are trusted; None: those of the system.
        timeout_secs (float): How many seconds to wait for an answer.
    """

    url: str
    user: str = ""
    password: str = ""
    ca_file: str | None = None
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")) or "@" in self.url:
            raise InvalidKafkaSpout("a schema registry is given a URL that is not shown here, expected http(s)://host")
        if bool(self.user) != bool(self.password) or (self.password and not is_reference(self.password)):
            raise InvalidKafkaSpout(
                "a schema registry is given a user without a reference to a password, or the other way round; expected "
                "both, and password='env:NAME' or 'file:PATH'"
            )

    def schema(self, schema_id: int) -> str:
        """Return the schema of an id.

        Args:
            schema_id (int): Its number in the registry.

        Raises:
            LookupError: there is none: the record that names it cannot be read.
            SchemaUnusable: it is none of Avro's, or refers to others.
            KafkaRefused: the registry does not let us in.
            FailedException: the registry is away.
        """
        import ssl  # here, since most processes that know of registries ask none
        import urllib.error
        import urllib.request

        request = urllib.request.Request(f"{self.url.rstrip('/')}/schemas/ids/{schema_id}")
        if self.user:
            secret = resolve_secret(self.password, f"the password of {self.url}")
            token = base64.b64encode(f"{self.user}:{secret}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        context = ssl.create_default_context(cafile=self.ca_file) if self.url.startswith("https:") else None
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_secs, context=context) as response:
                found = json.load(response)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise LookupError(f"{self.url} has no schema {schema_id}") from None
            if error.code in (401, 403):
                raise KafkaRefused.of(f"schema {schema_id} of {self.url}", f"{error.code} {error.reason}") from None
            raise FailedException(f"{self.url} gave {error.code} {error.reason} for schema {schema_id}") from error
        except (OSError, ValueError) as error:
            raise FailedException(f"{self.url} does not answer for schema {schema_id}: {error}") from error
        kind, schema = found.get("schemaType", "AVRO"), found.get("schema")
        if kind != "AVRO" or not isinstance(schema, str) or found.get("references"):
            raise SchemaUnusable(
                f"schema {schema_id} of {self.url} is of type {kind} or refers to others; expected one of Avro that "
                "stands alone: register it so, or pass a callable of your own as value"
            )
        return schema
