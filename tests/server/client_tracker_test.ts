import { assertEquals, assertStringIncludes } from "@std/assert";
import { clientAddress } from "../../lib/server/client_tracker.ts";
import type { Json } from "../../lib/json/mod.ts";
import { exchange, head, startServer } from "./serve.ts";

const PROXIES = ["10.0.0.0/8", "2001:db8:1::/48"];

Deno.test("clientAddress() uses X-Forwarded-For of trusted proxies", () => {
  const cases: [string | undefined, string | null, string | undefined][] = [
    // peer, header, address
    ["192.0.2.1", null, "192.0.2.1"],
    ["2001:db8::1", null, "2001:db8::1"],
    [undefined, null, undefined],
    [undefined, "192.0.2.1", undefined],
    // A client that connects directly may send any header.
    ["192.0.2.1", "10.0.0.5", "192.0.2.1"],
    ["192.0.2.1", "198.51.100.7, 10.0.0.5", "192.0.2.1"],
    ["10.0.0.1", null, "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1", "192.0.2.1"],
    ["10.0.0.1", " 192.0.2.1 ", "192.0.2.1"],
    // The client's own value is to the left of what the proxy added.
    ["10.0.0.1", "198.51.100.7, 192.0.2.1", "192.0.2.1"],
    ["10.0.0.1", "nonsense, 192.0.2.1", "192.0.2.1"],
    ["10.0.0.1", "198.51.100.7,192.0.2.1,10.0.0.2,10.0.0.3", "192.0.2.1"],
    ["10.0.0.1", "10.0.0.9, 10.0.0.2", "10.0.0.9"],
    // Ports and brackets.
    ["10.0.0.1", "192.0.2.1:4711", "192.0.2.1"],
    ["10.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"],
    ["10.0.0.1", "[2001:db8::7]", "2001:db8::7"],
    ["10.0.0.1", "2001:db8::7, [2001:db8:1::2]:80", "2001:db8::7"],
    ["2001:db8:1::1", "2001:db8::7", "2001:db8::7"],
    // IPv4 in IPv6.
    ["::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"],
    ["::ffff:a00:1", "192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.9", "10.0.0.5", "::ffff:192.0.2.9"],
    ["10.0.0.1", "192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1"],
    // The header cannot be parsed.
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", ",", "10.0.0.1"],
    ["10.0.0.1", "unknown", "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1, unknown", "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1, _hidden, 10.0.0.2", "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1/8", "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1:port", "10.0.0.1"],
    ["10.0.0.1", "[192.0.2.1", "10.0.0.1"],
    ["10.0.0.1", "fe80::1%eth0", "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1 10.0.0.2", "10.0.0.1"],
  ];
  for (const [peer, forwardedFor, address] of cases) {
    assertEquals(clientAddress(peer, { forwardedFor, trusted: PROXIES }), address, `${peer} <- ${forwardedFor}`);
  }
});

Deno.test("clientAddress() trusts no proxy by default", () => {
  assertEquals(clientAddress("127.0.0.1", { forwardedFor: "192.0.2.1", trusted: [] }), "127.0.0.1");
});

Deno.test("clientAddress() reads a limited number of addresses", () => {
  const forwardedFor = `192.0.2.1${", 10.0.0.2".repeat(10_000)}`;
  assertEquals(clientAddress("10.0.0.1", { forwardedFor, trusted: PROXIES }), "10.0.0.2");
});

Deno.test("a key bound to addresses is checked by connection, or by the header of a trusted proxy", async () => {
  const cases: [Record<string, Json>, string | undefined, number][] = [
    // configuration, header, status
    [{ groups: { default: { ips: ["127.0.0.1"] } } }, undefined, 200],
    [{ groups: { default: { ips: ["192.0.2.0/24"] } } }, undefined, 403],
    [{ groups: { default: { ips: ["192.0.2.0/24"] } } }, "192.0.2.1", 403],
    [{ groups: { default: { ips: ["192.0.2.0/24"] } }, trusted_proxies: ["127.0.0.0/8"] }, "192.0.2.1", 200],
    [
      { groups: { default: { ips: ["192.0.2.0/24"] } }, trusted_proxies: ["127.0.0.0/8"] },
      "192.0.2.1, 203.0.113.5",
      403,
    ],
    [{ groups: { default: { ips: ["127.0.0.1"] } }, trusted_proxies: ["127.0.0.0/8"] }, "203.0.113.5", 403],
  ];
  for (const [file, forwarded, status] of cases) {
    await using server = startServer({ file });
    const headers = {
      authorization: `Bearer ${server.key}`,
      ...(forwarded !== undefined && { "x-forwarded-for": forwarded }),
    };
    const response = await exchange(server.port, [head("GET /v1/things", headers)]);
    assertEquals(response.status, status, `${JSON.stringify(file)} ${forwarded}`);
    if (status === 403) assertStringIncludes(response.body, "This API key may not be used from this address");
  }
});
