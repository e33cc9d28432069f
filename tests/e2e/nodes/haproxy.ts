/** Nodes behind the HAProxy of docs/how-to/rolling-restart.md. */
import { assertEquals } from "@std/assert";
import { reservePort } from "../../support/ports.ts";
import { until } from "../../support/soon.ts";
import { ADMIN_KEY, type Node } from "./cluster.ts";

/** Settings of checks in the guide. */
const CHECKS = "default-server check inter 1s fall 2 rise 2";

/** The proxy's file of the repository, with the guide's backend for several nodes in place of its own. */
async function proxyFile(port: number, nodes: readonly Node[]): Promise<string> {
  const read = (path: string) => Deno.readTextFile(new URL(`../../../${path}`, import.meta.url));
  const [before, rest] = (await read("deploy/haproxy/haproxy.cfg")).split("\nbackend gateway\n");
  const [, backend] = /```haproxy\n(.*?)```/s.exec(await read("docs/how-to/rolling-restart.md")) ?? [];
  if (before === undefined || rest === undefined || backend === undefined) throw new Error("The files have changed");
  let text = `${before}\n${backend}`.replace(
    "bind :443 ssl crt /etc/ssl/sluice/site.pem alpn h2,http/1.1",
    () => `bind 127.0.0.1:${port}`,
  );
  for (const [index, { origin }] of nodes.entries()) {
    text = text.replace(`10.0.0.1${index + 1}:8790`, () => new URL(origin).host);
  }
  assertEquals([/10\.0\.0|:443/.test(text), text.includes("/readyz"), text.includes(CHECKS)], [false, true, true]);
  return text;
}

/** Requests for text that a node has answered. */
export async function served({ origin }: Node): Promise<number> {
  const response = await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  const lines = (await response.text()).split("\n");
  const counts = lines.filter((line) => line.startsWith(`sluice_requests_total{endpoint="chat"`));
  return counts.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** Starts HAProxy before the nodes. `checks` replaces the guide's settings of checks. */
export async function startProxy(
  nodes: readonly Node[],
  { checks = CHECKS }: { checks?: string } = {},
): Promise<{ origin: string } & AsyncDisposable> {
  const folder = await Deno.makeTempDir();
  const reserved = reservePort();
  const { port } = reserved;
  const text = (await proxyFile(port, nodes)).replace(CHECKS, () => checks);
  await Deno.writeTextFile(`${folder}/haproxy.cfg`, text);
  const child = new Deno.Command("haproxy", {
    args: ["-f", `${folder}/haproxy.cfg`, "-db"],
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  const origin = `http://127.0.0.1:${port}`;
  await until(
    "the proxy answers",
    () => fetch(`${origin}/healthz`).then(async (answer) => (await answer.text(), answer.ok), () => false),
  );
  return {
    origin,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
      reserved[Symbol.dispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}
