import { assertEquals, assertStringIncludes } from "@std/assert";
import { inFolder, type Place, reuseGateways, type Running, start, startReused } from "../../support/program.ts";
import { canRun, skipIf } from "../../support/skip.ts";
import { eventually, until } from "../../support/soon.ts";

reuseGateways();

const ADMIN_KEY = "admin-key-of-these-listeners";
/** Addresses of the gateway and of the scanner, in a network reserved for documentation. */
const HERE = "203.0.113.1";
const THERE = "203.0.113.2";

/** An address of `/proc/net/tcp`: four bytes, or sixteen, each word in little-endian order. */
function addressOf(hex: string): string {
  if (hex.length === 8) return hex.match(/../g)?.map((byte) => parseInt(byte, 16)).reverse().join(".") ?? "";
  return hex;
}

/** The sockets on which a process listens, according to the system. */
async function listeners(pid: number): Promise<{ hostname: string; port: number }[]> {
  const inodes = new Set<string>();
  for await (const { name } of Deno.readDir(`/proc/${pid}/fd`)) {
    const target = await Deno.readLink(`/proc/${pid}/fd/${name}`).catch(() => "");
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined) inodes.add(inode);
  }
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => Deno.readTextFile(`/proc/${pid}/net/${name}`)));
  return tables.flatMap((table) => table.trim().split("\n").slice(1)).flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    return state === "0A" && inodes.has(inode) ? [{ hostname: addressOf(address), port: parseInt(port, 16) }] : [];
  });
}

async function startWith(folder: string, file: Record<string, unknown>, under?: Place["under"]): Promise<Running> {
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(file));
  const place = { folder, env: { ADMIN_KEY } };
  return under === undefined ? await startReused(["serve"], place) : await start(["serve"], { ...place, under });
}

async function end({ kill, ended }: Running): Promise<void> {
  kill("SIGTERM");
  await ended;
}

const ADMIN = { key: { env: "ADMIN_KEY" } };

Deno.test({
  name: "by default the gateway listens on loopback only, and its admin side always does",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const cases: [file: Record<string, unknown>, hostnames: string[]][] = [
      [{}, ["127.0.0.1"]],
      [{ admin: ADMIN }, ["127.0.0.1"]],
      [{ admin: { ...ADMIN, listen: { port: 0 } } }, ["127.0.0.1", "127.0.0.1"]],
      [{ listen: { hostname: "0.0.0.0" }, admin: { ...ADMIN, listen: { port: 0 } } }, ["0.0.0.0", "127.0.0.1"]],
    ];
    for (const [file, hostnames] of cases) {
      await inFolder(async (folder) => {
        const gateway = await startWith(folder, file);
        try {
          assertEquals((await listeners(gateway.pid)).map(({ hostname }) => hostname).sort(), hostnames);
        } finally {
          await end(gateway);
        }
      });
    }
  },
});

/** Two namespaces with a network of their own between them. */
interface Network extends AsyncDisposable {
  here: string;
  there: string;
}

/** Creates a network namespace; undefined without permission. The machine's own network is unchanged. */
async function startNetwork(): Promise<Network | undefined> {
  if (Deno.build.os !== "linux") return undefined;
  const [here, there] = [`sluice-here-${Deno.pid}`, `sluice-there-${Deno.pid}`];
  const steps = [
    ["netns", "add", here],
    ["netns", "add", there],
    ["-n", here, "link", "add", "one", "type", "veth", "peer", "name", "two", "netns", there],
    ["-n", here, "addr", "add", `${HERE}/30`, "dev", "one"],
    ["-n", there, "addr", "add", `${THERE}/30`, "dev", "two"],
    ["-n", here, "link", "set", "lo", "up"],
    ["-n", here, "link", "set", "one", "up"],
    ["-n", there, "link", "set", "two", "up"],
  ];
  const dispose = async () => {
    for (const name of [here, there]) await canRun("ip", "netns", "del", name);
  };
  for (const step of steps) {
    if (await canRun("ip", ...step)) continue;
    await dispose();
    return undefined;
  }
  return { here, there, [Symbol.asyncDispose]: dispose };
}

/** Those of the gateway's ports that accept connections from the namespace. */
async function reachable(name: string, ports: readonly number[]): Promise<number[]> {
  const look = `const open = [];
    for (const port of ${JSON.stringify(ports)}) {
      try {
        (await Deno.connect({ hostname: "${HERE}", port, signal: AbortSignal.timeout(30_000) })).close();
        open.push(port);
      } catch {}
    }
    console.log(JSON.stringify(open));`;
  const { stdout } = await new Deno.Command("ip", {
    args: ["netns", "exec", name, Deno.execPath(), "eval", look],
    stdin: "null",
    stderr: "inherit",
  }).output();
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("from another machine one port is open, without an admin side", async (t) => {
  await using network = await startNetwork();
  await t.step({
    name: "seen from another network namespace",
    // Only root may make one, and not everywhere.
    ignore: skipIf(network === undefined, "ip (iproute2) is not installed, or may not make network namespaces"),
    fn: () =>
      inFolder(async (folder) => {
        const file = { listen: { hostname: "0.0.0.0" }, admin: { ...ADMIN, listen: { port: 0 } } };
        const gateway = await startWith(folder, file, ["ip", "netns", "exec", network?.here ?? ""]);
        try {
          const own = await listeners(gateway.pid);
          assertEquals(own.length, 2);
          const open = await reachable(network?.there ?? "", own.map(({ port }) => port));
          assertEquals(open, [Number(new URL(gateway.origin).port)]);
        } finally {
          await end(gateway);
        }
      }),
  });
});

Deno.test({
  name: "a gateway that has no file descriptors left accepts connections again when there are some",
  ignore: Deno.build.os !== "linux" || skipIf(!await canRun("sh", "-c", "ulimit -n 64"), "sh is not installed"),
  fn: () =>
    inFolder(async (folder) => {
      const gateway = await startWith(folder, {}, ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"]);
      const port = Number(new URL(gateway.origin).port);
      const connections: Deno.Conn[] = [];
      try {
        await until("no descriptor is left", async () => {
          const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
          if (connection !== undefined) connections.push(connection);
          return connection === undefined;
        });
        for (const connection of connections) connection.close();
        await eventually(async () => await (await fetch(`${gateway.origin}/healthz`)).body?.cancel());
      } finally {
        await end(gateway);
      }
      const { err } = await gateway.ended;
      assertStringIncludes(err, '"event":"listener_failed"');
      assertStringIncludes(err, '"fault":"too many open files"');
      assertStringIncludes(err, '"event":"listener_reopened"');
    }),
});
