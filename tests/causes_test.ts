import { DatabaseSync } from "node:sqlite";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { describeCause, faultOf, pathOf, reasonOf } from "../lib/causes.ts";
import { Dialer } from "../lib/http1/mod.ts";
import { addressPolicy } from "../lib/upstreams/address_guard.ts";
import { oneModel, startGateway } from "./support/gateway.ts";
import { prompt } from "./upstream/replies.ts";
import { CLOSED_PORT } from "./support/closed_port.ts";

const CERT = await Deno.readTextFile(new URL("fixtures/tls/server.pem", import.meta.url));
const KEY = await Deno.readTextFile(new URL("fixtures/tls/server.key", import.meta.url));

/** A host that sends this text to every connection and closes it. */
function startSaying(words: string): Deno.TcpListener {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  void (async () => {
    for await (const connection of listener) {
      await connection.write(new TextEncoder().encode(words)).catch(() => {});
      connection.close();
    }
  })();
  return listener;
}

async function dialFault(hostname: string, { port, tls }: { port: number; tls: boolean }): Promise<string | undefined> {
  const dialer = new Dialer({ hostname, port, tls }, addressPolicy());
  const error = await assertRejects(() => dialer.dial(AbortSignal.timeout(10_000)));
  dialer.close();
  return faultOf(error);
}

Deno.test("faultOf() names connection errors: refused, unknown name, no TLS, untrusted", async () => {
  assertEquals(await dialFault("127.0.0.1", { port: CLOSED_PORT, tls: false }), "connection refused");
  assertEquals(await dialFault("no-such-host.invalid", { port: 1, tls: false }), "name not found");
  assertEquals(await dialFault("169.254.169.254", { port: 80, tls: false }), "address not allowed");
  using plain = startSaying("HTTP/1.1 400 Bad Request\r\n\r\n");
  assertEquals(await dialFault("127.0.0.1", { port: plain.addr.port, tls: true }), "no proper TLS");
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, cert: CERT, key: KEY, onListen() {} },
    () => new Response(),
  );
  const other = await dialFault("127.0.0.1", { port: server.addr.port, tls: true });
  assertEquals(other, "certificate not trusted");
});

Deno.test("the log names the fault of a target, for both clients", async () => {
  for (const transport of ["http1", "fetch"]) {
    const faults: Record<string, unknown> = {};
    for (
      const [name, url] of [["refused", `http://127.0.0.1:${CLOSED_PORT}`], [
        "name",
        "http://no-such-host.invalid",
      ]] as const
    ) {
      await using gateway = startGateway(oneModel("chat", url, { transport }));
      const response = await gateway.ask("chat", prompt("chat"));
      assertEquals(response.status, 502, await response.text());
      faults[name] = gateway.logs.find(({ event }) => event === "target_failed")?.fault;
    }
    assertEquals(faults, { refused: "connection refused", name: "name not found" }, transport);
  }
});

Deno.test("faultOf() names disk errors with their path, and never only a type", async () => {
  const missing = await assertRejects(() => Deno.writeTextFile("/proc/sluice-test", ""));
  assertEquals(describeCause(missing).path ?? pathOf(missing), "/proc/sluice-test");
  const cases: [string, string][] = [
    ["No space left on device (os error 28): write '/data/x'", "disk full"],
    ["database or disk is full", "disk full"],
    ["attempt to write a readonly database", "read-only"],
    ["Read-only file system (os error 30): open '/data/x'", "read-only"],
    ["Permission denied (os error 13): open '/data/x'", "permission missing"],
    ["invalid peer certificate: Expired", "certificate expired or not yet valid"],
    ["invalid peer certificate: certificate expired: verification time 2", "certificate expired or not yet valid"],
    [
      "invalid peer certificate: certificate not valid yet: verification time 2",
      "certificate expired or not yet valid",
    ],
    ['invalid peer certificate: certificate not valid for name "a"', "certificate of another host"],
    ["received fatal alert: ProtocolVersion", "no common version of TLS"],
    ["Connection reset by peer (os error 104)", "connection reset"],
    ["write CONNECT_TIMEOUT 127.0.0.1:5432", "timeout"],
    ["write CONNECTION_CLOSED 127.0.0.1:5432", "connection ended"],
  ];
  const ofPostgres: [code: string, message: string, fault: string][] = [
    ["25006", "cannot execute INSERT in a read-only transaction", "read-only"],
    ["53100", "could not extend file", "disk full"],
    ["XX000", "could not write init file", "disk full"],
    ["53300", "sorry, too many clients already", "too many connections"],
    ["57P03", "the database system is starting up", "server starting or stopping"],
    ["28P01", 'password authentication failed for user "sluice"', "login refused"],
  ];
  for (const [code, message, fault] of ofPostgres) {
    assertEquals(faultOf(Object.assign(new Error(message), { name: "PostgresError", code })), fault);
  }
  for (const [message, fault] of cases) {
    assertEquals(faultOf(new Error("outer", { cause: new Error(message) })), fault, message);
  }
  assertEquals(pathOf(new Error("Permission denied (os error 13): open '/data/x'")), "/data/x");
  assertEquals(faultOf(new TypeError("x is not a function")), undefined);
  for (const thrown of ["text", 7, null]) assertEquals(describeCause(thrown), { cause: "Error" });
});

Deno.test("faultOf() tells a locked database from a damaged one", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/one.db`;
    const holder = new DatabaseSync(path);
    holder.exec("CREATE TABLE one (a); BEGIN IMMEDIATE");
    const other = new DatabaseSync(path);
    assertEquals(faultOf(assertThrows(() => other.exec("BEGIN IMMEDIATE"))), "database locked");
    other.close();
    holder.close();
    await Deno.writeFile(path, new Uint8Array(8192).fill(7));
    const damaged = new DatabaseSync(path);
    assertEquals(faultOf(assertThrows(() => damaged.exec("SELECT * FROM one"))), "database damaged");
    damaged.close();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("reasonOf() says where an executable may keep files, instead of how to compile it", () => {
  const advice = "specify the required permissions during compilation using `deno compile --allow-read`";
  const error = new Deno.errors.NotCapable(`Requires read access to "/backup/a.db", ${advice}`);
  const reason = 'this executable may not read "/backup/a.db", but only files in the current folder, /etc/sluice and ' +
    "/var/lib/sluice";
  assertEquals(reasonOf(error), reason);
  assertEquals(reasonOf(new Error("failed", { cause: error })), `failed: ${reason}`);
  const other = 'Requires net access to "db:1", run again with the --allow-net flag';
  assertEquals(reasonOf(new Deno.errors.NotCapable(other)), other);
});
