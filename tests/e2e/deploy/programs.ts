/** Runs the real proxies with the files of `deploy/`, in which only addresses, certificates and times are replaced. */
import { reservePort } from "../../support/ports.ts";
import { findProgram, skipIf } from "../../support/skip.ts";
import { until } from "../../support/soon.ts";

const ROOT = new URL("../../../", import.meta.url);
const TLS = new URL("../../fixtures/tls/", import.meta.url).pathname;

/** A proxy program and how its file is made to fit a test. */
export interface ProxyKind {
  name: "nginx" | "caddy" | "haproxy";
  /** Path of its file in the repository. */
  file: string;
  /** Replacements in the file: each text must occur exactly once, or the test fails. */
  changes(place: Place): [from: string, to: string][];
  /** Returns the command's arguments, and writes the other files that the program needs. */
  prepare(place: Place & { text: string }): Promise<{ path: string; args: string[] }>;
}

/** The setup of a proxy: its folder, its port on `::1`, and the gateway's port on 127.0.0.1. */
export interface Place {
  folder: string;
  port: number;
  gatewayPort: number;
}

/** A running proxy. */
export interface Proxy extends AsyncDisposable {
  port: number;
}

/** Time limits in the tests, in seconds: each replaces a longer one of the file. */
export const HEAD_SECONDS = 1;
export const BODY_GAP_SECONDS = 1;
export const SILENCE_SECONDS = 3;

/** The proxies that `deploy/` has files for. */
export const PROXIES: readonly ProxyKind[] = [
  {
    name: "nginx",
    file: "deploy/nginx/sluice.conf",
    changes: ({ port, gatewayPort }) => [
      ["server 127.0.0.1:8790;", `server 127.0.0.1:${gatewayPort};`],
      ["listen 443 ssl http2;", `listen 127.0.0.1:${port} ssl http2;`],
      ["listen [::]:443 ssl http2;", `listen [::1]:${port} ssl http2;`],
      ["/etc/ssl/sluice/fullchain.pem", `${TLS}server.pem`],
      ["/etc/ssl/sluice/key.pem", `${TLS}server.key`],
      ["client_header_timeout 10s;", `client_header_timeout ${HEAD_SECONDS}s;`],
      ["client_body_timeout   15s;", `client_body_timeout ${BODY_GAP_SECONDS}s;`],
      ["proxy_read_timeout    960s;", `proxy_read_timeout ${SILENCE_SECONDS}s;`],
    ],
    async prepare({ folder, text }) {
      const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) =>
        `${name}_temp_path ${folder}/${name};`
      );
      const whole = [
        ...(Deno.uid() === 0 ? ["user root;"] : []),
        `pid ${folder}/nginx.pid;`,
        "error_log stderr warn;",
        "events {}",
        `http {\naccess_log off;\n${paths.join("\n")}\n${text}\n}`,
      ];
      await Deno.writeTextFile(`${folder}/nginx.conf`, whole.join("\n"));
      return { path: "nginx", args: ["-p", folder, "-c", `${folder}/nginx.conf`, "-g", "daemon off;"] };
    },
  },
  {
    name: "caddy",
    file: "deploy/caddy/Caddyfile",
    changes: ({ port, gatewayPort }) => [
      // Its own authority and port 80 are unreachable here; it would fetch a certificate for the name.
      ["{\n\tservers {", "{\n\tadmin off\n\tauto_https off\n\tservers {"],
      ["llm.example.com {", `https://localhost:${port} {\n\ttls ${TLS}server.pem ${TLS}server.key`],
      ["reverse_proxy 127.0.0.1:8790 {", `reverse_proxy 127.0.0.1:${gatewayPort} {`],
      ["read_header 10s", `read_header ${HEAD_SECONDS}s`],
      ["read_body 120s", `read_body ${BODY_GAP_SECONDS}s`],
      ["response_header_timeout 960s", `response_header_timeout ${SILENCE_SECONDS}s`],
    ],
    async prepare({ folder, text }) {
      await Deno.writeTextFile(`${folder}/Caddyfile`, text);
      return { path: "caddy", args: ["run", "--config", `${folder}/Caddyfile`, "--adapter", "caddyfile"] };
    },
  },
  {
    name: "haproxy",
    file: "deploy/haproxy/haproxy.cfg",
    changes: ({ folder, port, gatewayPort }) => [
      ["server sluice 127.0.0.1:8790", `server sluice 127.0.0.1:${gatewayPort}`],
      [
        "bind :443 ssl crt /etc/ssl/sluice/site.pem",
        `bind 127.0.0.1:${port},[::1]:${port} ssl crt ${folder}/site.pem`,
      ],
      ["timeout http-request 10s", `timeout http-request ${HEAD_SECONDS}s`],
      ["timeout client 60s", `timeout client ${BODY_GAP_SECONDS}s`],
      ["timeout server 960s", `timeout server ${SILENCE_SECONDS}s`],
    ],
    async prepare({ folder, text }) {
      const pem = await Promise.all(["server.pem", "server.key"].map((name) => Deno.readTextFile(TLS + name)));
      await Deno.writeTextFile(`${folder}/site.pem`, pem.join("\n"));
      await Deno.writeTextFile(`${folder}/haproxy.cfg`, text);
      return { path: "haproxy", args: ["-f", `${folder}/haproxy.cfg`, "-db"] };
    },
  },
];

/** The authority that has signed the proxies' certificate. */
export const AUTHORITY = await Deno.readTextFile(`${TLS}ca.pem`);

/** True if a program is installed; its tests are skipped otherwise. */
export function isInstalled(program: string): boolean {
  return !skipIf(findProgram(program, ["/usr/sbin"]) === undefined, `${program} is not installed`);
}

/** Number of ports that a proxy tries: another connection may use a reserved port as its source. */
const PORTS_TRIED = 3;

/** Starts a proxy in front of a gateway, and waits until it listens on both addresses of `localhost`. */
export async function startProxy(kind: ProxyKind, gatewayPort: number): Promise<Proxy> {
  const outputs: string[] = [];
  while (outputs.length < PORTS_TRIED) {
    const proxy = await tryToStart(kind, gatewayPort);
    if (typeof proxy !== "string") return proxy;
    outputs.push(proxy);
  }
  throw new Error(`${kind.name} did not start:\n${outputs.join("\n")}`);
}

/** Starts a proxy on a port. Returns the program's output if it ends instead of listening. */
async function tryToStart(kind: ProxyKind, gatewayPort: number): Promise<Proxy | string> {
  const folder = await Deno.makeTempDir();
  const reserved = reservePort();
  const place = { folder, port: reserved.port, gatewayPort };
  let text = await Deno.readTextFile(new URL(kind.file, ROOT));
  for (const [from, to] of kind.changes(place)) {
    if (text.split(from).length !== 2) throw new Error(`${kind.file} does not have "${from}" exactly once`);
    text = text.replace(from, () => to);
  }
  const { path, args } = await kind.prepare({ ...place, text });
  const child = new Deno.Command(findProgram(path, ["/usr/sbin"]) ?? path, {
    args,
    cwd: folder,
    env: { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const output = new Response(child.stderr).text();
  let ended = false;
  void child.status.then(() => ended = true);
  const proxy: Proxy = {
    port: place.port,
    async [Symbol.asyncDispose]() {
      // HAProxy and nginx stop quickly at SIGTERM.
      if (!ended) child.kill("SIGTERM");
      await child.status;
      await output;
      reserved[Symbol.dispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
  // HAProxy listens on one address for a moment even if the other is taken.
  await until(
    `start of ${kind.name}`,
    async () => ended || await listens("::1", place.port) && await listens("127.0.0.1", place.port),
  );
  if (!ended) return proxy;
  await proxy[Symbol.asyncDispose]();
  return await output;
}

async function listens(hostname: string, port: number): Promise<boolean> {
  try {
    using _connection = await Deno.connect({ hostname, port });
    return true;
  } catch {
    return false;
  }
}
