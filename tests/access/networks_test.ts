import { assertEquals } from "@std/assert";
import { isNetwork, isWithin } from "../../lib/access/networks.ts";

Deno.test("isNetwork() accepts only IPv4 and IPv6 addresses and networks", () => {
  const good = `
    10.0.0.1 10.0.0.0/8 0.0.0.0/0 255.255.255.255/32 :: ::1 2001:db8::/32 2001:DB8:1:2:3:4:5:6/128
    ::ffff:10.0.0.0/104`.trim().split(/\s+/);
  const bad = [
    "",
    "10.0.0",
    "10.0.0.256",
    "10.0.0.01",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "::/129",
    ":::1",
    "::ffff:10.0.0.0/95",
    "fe80::1%eth0",
    "[::1]",
    "localhost",
    "10.0.0.1:80",
    " 10.0.0.1",
    "*",
  ];
  for (const text of good) assertEquals(isNetwork(text), true, text);
  for (const text of bad) assertEquals(isNetwork(text), false, text);
});

Deno.test("isWithin() compares the leading bits within one family", () => {
  const cases: [string, string[], boolean][] = [
    ["10.1.2.3", ["10.0.0.0/8"], true],
    ["11.1.2.3", ["10.0.0.0/8"], false],
    ["10.1.2.3", ["10.1.2.3"], true],
    ["10.1.2.4", ["10.1.2.3"], false],
    ["10.1.2.4", ["10.1.2.3", "10.1.2.4/31"], true],
    ["10.1.2.5", ["10.1.2.4/31"], true],
    ["10.1.2.6", ["10.1.2.4/31"], false],
    // Bits past the length do not matter.
    ["10.9.9.9", ["10.1.2.3/8"], true],
    ["255.255.255.255", ["0.0.0.0/0"], true],
    ["::1", ["0.0.0.0/0"], false],
    ["10.0.0.1", ["::/0"], false],
    ["::1", ["::/0"], true],
    ["2001:db8:ffff::1", ["2001:db8::/32"], true],
    ["2001:db9::1", ["2001:db8::/32"], false],
    ["2001:0DB8:0:0:0:0:0:1", ["2001:db8::1"], true],
    ["2001:db8::1:0:0:1", ["2001:db8:0:0:1::1"], true],
    ["1:2:3:4:5:6:7:8", ["1:2:3:4:5:6:7:8"], true],
    ["1::8", ["1:0:0:0:0:0:0:8"], true],
    ["64:ff9b::10.0.0.1", ["64:ff9b::a00:1"], true],
    ["::ffff:10.0.0.1", ["10.0.0.0/8"], true],
    ["::ffff:a00:1", ["10.0.0.0/8"], true],
    ["0:0:0:0:0:ffff:10.0.0.1", ["10.0.0.1"], true],
    ["10.0.0.1", ["::ffff:10.0.0.0/104"], true],
    ["11.0.0.1", ["::ffff:10.0.0.0/104"], false],
    ["::10.0.0.1", ["10.0.0.1"], false],
    ["10.0.0.1", [], false],
    ["nonsense", ["0.0.0.0/0", "::/0"], false],
    ["", ["0.0.0.0/0", "::/0"], false],
    ["fe80::1%eth0", ["::/0"], false],
  ];
  for (const [address, networks, within] of cases) {
    assertEquals(isWithin(address, networks), within, `${address} in ${networks}`);
  }
});
