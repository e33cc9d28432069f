import { assertEquals, assertThrows } from "@std/assert";
import { transportKindFor } from "../../lib/upstreams/select_transport.ts";
import { packRequest } from "../../lib/http1/pack_request.ts";

/** Headers that every request has. */
const OWN = "accept-encoding: identity\r\nuser-agent: sluice\r\n";

function headOf(
  { target = "/v1?a=b", headers = {}, closes = false }: {
    target?: string;
    headers?: Record<string, string>;
    closes?: boolean;
  },
  body: string | ReadableStream<Uint8Array> = "",
): string {
  return new TextDecoder().decode(packRequest({ target, host: "one.example", headers, closes, body }).first);
}

Deno.test("a request head has target, headers and framing", () => {
  assertEquals(
    headOf({ headers: { "Content-Type": "application/json", empty: "" } }, "twelve bytes"),
    `POST /v1?a=b HTTP/1.1\r\nhost: one.example\r\n${OWN}Content-Type: application/json\r\nempty: \r\n` +
      `content-length: 12\r\n\r\ntwelve bytes`,
  );
  assertEquals(
    headOf({ closes: true }, new ReadableStream()),
    `POST /v1?a=b HTTP/1.1\r\nhost: one.example\r\n${OWN}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
});

Deno.test("values that would inject a line, header or request are rejected", () => {
  for (const value of ["a\r\nb: c", "a\n", "\r", "a\0b", "a\x7f", "\xe9", "\u2028", "\u0100", "😀"]) {
    assertThrows(() => headOf({ headers: { a: value } }), TypeError);
  }
});

Deno.test("requests through a proxy are left to fetch", () => {
  const cases: [url: string, env: Record<string, string>, isDirect: boolean][] = [
    ["https://one.example/v1", {}, true],
    ["http://[::1]:80", {}, true],
    ["https://one.example", { HTTPS_PROXY: "" }, true],
    ["https://one.example", { HTTP_PROXY: "http://p" }, true],
    ["http://one.example", { HTTPS_PROXY: "http://p" }, true],
    ["https://one.example", { NO_PROXY: "one.example" }, true],
    ["https://one.example", { HTTPS_PROXY: "http://p" }, false],
    ["https://one.example", { https_proxy: "http://p" }, false],
    ["http://one.example", { http_proxy: "http://p" }, false],
    ["http://one.example", { ALL_PROXY: "http://p" }, false],
    ["https://one.example", { all_proxy: "http://p" }, false],
    ["https://one.example", { all_proxy: "http://p", NO_PROXY: ".example" }, true],
    ["http://10.0.0.7:8000", { HTTP_PROXY: "http://p", NO_PROXY: "10.0.0.0/8" }, true],
    ["http://11.0.0.7:8000", { HTTP_PROXY: "http://p", NO_PROXY: "10.0.0.0/8" }, false],
  ];
  for (const [url, env, isDirect] of cases) {
    const kind = transportKindFor({ url, configured: "auto", env: (name) => env[name] });
    assertEquals(kind, isDirect ? "http1" : "fetch", url + JSON.stringify(env));
  }
});
