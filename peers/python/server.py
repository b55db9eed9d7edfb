"""A server of the standard library alone, with tools that do what servers do: files, temporary files, processors."""

import base64
import http.client
import json
import os
import socket
import sys
import tempfile
import time
import urllib.parse


def call(name, arguments):
    if name == "write":
        with open(arguments["path"], "w") as f:
            return f.write(arguments["text"])
    if name == "read":
        with open(arguments["path"]) as f:
            return f.read()
    if name == "temporary":
        with tempfile.TemporaryDirectory() as top:
            with open(os.path.join(top, "x"), "w") as f:
                f.write("x")
            return sorted(os.listdir(top))
    if name == "tunnel":  # through the proxy of the environment
        proxy = urllib.parse.urlparse(os.environ["https_proxy"])
        token = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        tunnel = http.client.HTTPConnection(proxy.hostname, proxy.port)
        tunnel.set_tunnel(arguments["host"], int(arguments["port"]), {"Proxy-Authorization": "Basic " + token})
        tunnel.request("GET", "/")
        return tunnel.getresponse().read().decode()
    if name == "connect":  # around it
        socket.create_connection((arguments["host"], int(arguments["port"]))).close()
        return "connected"
    if name == "machine":
        return [os.cpu_count(), time.strftime("%Z", time.localtime(0)), sys.version]
    raise ValueError("there is no tool " + name)


TOOLS = {"write": ["path", "text"], "read": ["path"], "temporary": [], "machine": [], "tunnel": ["host", "port"], "connect": ["host", "port"]}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "python", "version": "1"},
        }
    if method == "tools/list":
        schema = lambda names: {"type": "object", "properties": {n: {"type": "string"} for n in names}}
        return {"tools": [{"name": t, "inputSchema": schema(names)} for t, names in TOOLS.items()]}
    if method == "tools/call":
        try:
            text, failed = json.dumps(call(params["name"], params.get("arguments", {}))), False
        except (OSError, ValueError) as e:
            text, failed = str(e), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    if method == "ping":
        return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    if result is None:
        reply = {"error": {"code": -32601, "message": "there is no " + message["method"]}}
    else:
        reply = {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
