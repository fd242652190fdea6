"""Interactive documentation of an API, at /docs: Swagger UI from an installed package, under the strict policy.

On a server with a login the page is behind it. A service with a key has no login: there the page is open and empty,
asks for the key, and gets the description of the API with it.
"""

from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse

from tipbench.web.authentication import csrf_token

DOCS = "/docs"
DOCS_FILES = f"{DOCS}/files/*"
_OWN = Path(__file__).parent / "static"
_OWN_FILES = ("docs.css", "docs.js")
_SWAGGER_FILES = ("swagger-ui.css", "swagger-ui-bundle.js")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: API</title>
<link rel="stylesheet" href="{docs}/files/swagger-ui.css">
<link rel="stylesheet" href="{docs}/files/docs.css">
</head>
<body data-openapi="{openapi}" data-csrf="{csrf}">
<form id="key" hidden><label>Service key <input type="password" autocomplete="off" required></label>
<button>Show the API</button> <span role="alert"></span></form>
<main id="api"></main>
<script src="{docs}/files/swagger-ui-bundle.js"></script>
<script src="{docs}/files/docs.js"></script>
</body>
</html>
"""


def docs_router(title: str, openapi_url: str) -> APIRouter:
    api = APIRouter(include_in_schema=False)

    @api.get(DOCS)
    def docs(request: Request) -> HTMLResponse:
        values = {"title": title, "docs": DOCS, "openapi": openapi_url, "csrf": csrf_token(request)}
        return HTMLResponse(_PAGE.format_map({name: escape(value) for name, value in values.items()}))

    @api.get(f"{DOCS}/files/{{name}}")
    def docs_file(name: str) -> FileResponse:
        if name not in _files():
            raise HTTPException(404)
        return FileResponse(_files()[name])

    return api


@cache
def _files() -> dict[str, Path]:
    swagger = Path(str(files("fastapi_swagger"))) / "resources"
    return {name: _OWN / name for name in _OWN_FILES} | {name: swagger / name for name in _SWAGGER_FILES}
