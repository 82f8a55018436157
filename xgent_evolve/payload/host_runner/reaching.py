"""Whether the host reaches the model's service, or the proxy before it; nothing is asked of it."""

import socket
import ssl

TIMEOUT_S = 10


def reach(endpoint):
    """Connect, and make the TLS handshake where there is one; return what happened, in words."""
    address = (endpoint["host"], endpoint["port"])
    try:
        with socket.create_connection(address, TIMEOUT_S) as plain:
            if endpoint["tls"]:
                context = ssl.create_default_context()
                if endpoint["certificates"]:
                    context.load_verify_locations(cadata=endpoint["certificates"])
                with context.wrap_socket(plain, server_hostname=endpoint["host"]):
                    pass
    except (OSError, ValueError) as error:
        return {"reached": False, "detail": "%s: %s" % (type(error).__name__, error)}
    return {"reached": True, "detail": ""}
