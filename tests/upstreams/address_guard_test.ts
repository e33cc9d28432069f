import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { parseConfig } from "../../lib/config/parse.ts";
import { checkUpstream } from "../../lib/doctor/upstream.ts";
import {
  addressPolicy,
  allowedAddresses,
  BlockedAddress,
  createAddressGuard,
  literalAddress,
  metadataGuard,
  shareLookups,
} from "../../lib/upstreams/address_guard.ts";
import { Dialer } from "../../lib/http1/mod.ts";
import { simulateTime } from "../support/simulated_time.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { prompt, WHOLE } from "../upstream/replies.ts";
import { json, startUpstream } from "../upstream/mod.ts";
import { workedMs } from "../support/turns.ts";

const METADATA = [
  ...["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192"],
  ...["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "FD00:0EC2:0:0::254"],
  // The same within IPv6: mapped, compatible, translated, NAT64 with the well-known and a local prefix, 6to4.
  ...["::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::169.254.169.254", "::ffff:0:169.254.169.254"],
  ...["64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1"],
  ...["::ffff:168.63.129.16", "64:ff9b::100.100.100.200", "::ffff:192.0.0.192"],
];
const OPEN = [
  "127.0.0.1",
  "::1",
  "10.0.0.7",
  "192.168.1.1",
  "fd00:1::1",
  "93.184.216.34",
  "2606:2800::1",
  "192.0.0.191",
];

Deno.test("metadata addresses are refused in every spelling", () => {
  for (const address of METADATA) assertThrows(() => metadataGuard("a.test", address), BlockedAddress, address);
  for (const address of OPEN) metadataGuard("a.test", address);
});

Deno.test("if private networks are listed, no others can be reached, not even metadata addresses unless listed", () => {
  const guard = createAddressGuard(["10.1.0.0/16", "169.254.10.0/24"]);
  for (const address of ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "169.254.10.9", "93.184.216.34"]) {
    guard("a.test", address);
  }
  const closed = ["10.2.0.1", "127.0.0.1", "::1", "fd00::1", "fe80::1", "169.254.169.254", "::ffff:10.2.0.1"];
  for (
    const address of [...closed, "240.0.0.1", "255.255.255.255", "64:ff9b::f000:1", "239.1.1.1", "fec0::1", "ff02::1"]
  ) {
    assertThrows(() => guard("a.test", address), BlockedAddress, address);
  }
});

Deno.test("a name is refused if one of its addresses is", async () => {
  const lookup = () => Promise.resolve(["93.184.216.34", "::ffff:169.254.169.254"]);
  await assertRejects(
    () => allowedAddresses("rebound.test", { lookup }),
    BlockedAddress,
    "rebound.test is at ::ffff:169.254.169.254, a metadata address of clouds",
  );
});

Deno.test("a connection uses the checked address, even if the name changes meanwhile", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepted = listener.accept();
  const lookups: string[] = [];
  const policy = addressPolicy({
    lookup(hostname) {
      lookups.push(hostname);
      return Promise.resolve([lookups.length === 1 ? "127.0.0.1" : "169.254.169.254"]);
    },
  });
  const dialer = new Dialer({ hostname: "rebound.test", port: listener.addr.port, tls: false }, policy);
  const signal = new AbortController().signal;
  const [connection, other] = await Promise.all([dialer.dial(signal), accepted]);
  assertEquals([connection.remoteAddr.transport, lookups], ["tcp", ["rebound.test"]]);
  connection.close();
  other.close();
  await assertRejects(() => dialer.dial(signal), BlockedAddress);
  dialer.close();
});

Deno.test("concurrent lookups of a name are one, whose result later lookups do not get", async () => {
  const asked: [name: string, answer: PromiseWithResolvers<readonly string[]>][] = [];
  const lookup = shareLookups((name) => {
    const answer = Promise.withResolvers<readonly string[]>();
    asked.push([name, answer]);
    return answer.promise;
  });
  const waiting = [lookup("a.test"), lookup("a.test"), lookup("b.test")];
  assertEquals(asked.map(([name]) => name), ["a.test", "b.test"]);
  asked[0]?.[1].resolve(["192.0.2.1"]);
  asked[1]?.[1].reject(new Error("ENOTFOUND"));
  assertEquals(await Promise.all(waiting.slice(0, 2)), [["192.0.2.1"], ["192.0.2.1"]]);
  await assertRejects(() => waiting[2] ?? Promise.resolve(), Error, "ENOTFOUND");
  for (const name of ["a.test", "b.test"]) {
    const again = lookup(name);
    asked.at(-1)?.[1].resolve(["192.0.2.2"]);
    assertEquals(await again, ["192.0.2.2"]);
  }
});

Deno.test("lookups that get no answer leave half of the runtime's threads to the ledger", async () => {
  const asked: [name: string, answer: PromiseWithResolvers<readonly string[]>][] = [];
  const lookup = shareLookups((name) => {
    const answer = Promise.withResolvers<readonly string[]>();
    asked.push([name, answer]);
    return answer.promise;
  });
  const waiting = Array.from({ length: 40 }, (_, index) => lookup(`${index}.test`));
  for (let done = 0; done < 40; done++) {
    assertEquals(asked.length, Math.min(40, 16 + done));
    if (done % 2 === 0) asked[done]?.[1].resolve([`192.0.2.${done}`]);
    else asked[done]?.[1].reject(new Error("ENOTFOUND"));
    await Promise.allSettled([waiting[done]]);
  }
  assertEquals(asked.map(([name]) => name), Array.from({ length: 40 }, (_, index) => `${index}.test`));
});

Deno.test("a name that cannot be resolved any more keeps its addresses for an hour, unless one is refused", async () => {
  using time = simulateTime(0);
  let answer: () => Promise<readonly string[]> = () => Promise.resolve(["192.0.2.1"]);
  const { resolve } = addressPolicy({ lookup: () => answer() });
  const fails = () => Promise.reject(new Error("getaddrinfo ENOTFOUND a.test"));
  await assertRejects(() => addressPolicy({ lookup: fails }).resolve("a.test"), Error, "ENOTFOUND");
  assertEquals(await resolve("a.test"), ["192.0.2.1"]);
  answer = fails;
  assertEquals(await resolve("a.test"), ["192.0.2.1"]);
  answer = () => new Promise(() => {});
  const waiting = resolve("a.test");
  await time.pass(1_000);
  assertEquals(await waiting, ["192.0.2.1"]);
  answer = () => Promise.resolve(["169.254.169.254"]);
  await assertRejects(() => resolve("a.test"), BlockedAddress);
  answer = fails;
  await time.pass(3_600_000);
  await assertRejects(() => resolve("a.test"), Error, "ENOTFOUND");
  answer = () => Promise.resolve(["192.0.2.2"]);
  assertEquals(await resolve("a.test"), ["192.0.2.2"]);
});

for (const transport of ["http1", "fetch"]) {
  Deno.test(`${transport}: nothing is sent to an unlisted private network, by name or in any spelling`, async () => {
    await using server = startUpstream(() => json(WHOLE.chat));
    const { port } = new URL(server.url);
    let connections = 0;
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]) {
      for (const [networks, status] of [[["127.0.0.0/8", "::1"], 200], [["10.0.0.0/8"], 502]] as const) {
        const file = oneModel("chat", `http://${host}:${port}`, { transport });
        await using gateway = startGateway({ ...file, private_networks: [...networks] });
        const response = await gateway.ask("chat", prompt("chat"));
        const text = await response.text();
        assertEquals([host, response.status], [host, status], text);
        assert(!text.includes("127.0.0.1"), text);
        if (status === 200) connections++;
      }
    }
    assertEquals(server.requests.length, connections);
  });
}

Deno.test("doctor sends no key to a refused address", async () => {
  await using server = startUpstream(() => json({ data: [] }));
  const { upstreams } = parseConfig(oneModel("chat", server.url), () => "doctor-key-1");
  const one = upstreams.one;
  assert(one !== undefined && one.vendor !== "embedded");
  const look = { now: Date.now, timeoutMs: 5_000, env: () => undefined, guard: createAddressGuard([]) };
  const { findings } = await checkUpstream("one", { host: one, models: [], options: look });
  assertEquals([findings.at(-1)?.level, server.requests.length], ["error", 0]);
  assertStringIncludes(findings.at(-1)?.what ?? "", "127.0.0.1 is at 127.0.0.1, a private address");
});

Deno.test("literalAddress() reads a host of dots in linear time", () => {
  const before = workedMs();
  assertEquals(literalAddress(`https://${".".repeat(100_000)}b/`), undefined);
  assertEquals(literalAddress(`https://127.0.0.1${".".repeat(100_000)}/`), "127.0.0.1");
  assert(workedMs() - before < 1_000);
});
