/** The measured programs between the clients and the upstream, each in its own process. */
import type { Scenario } from "./scenarios.ts";

/** Path, headers and model of a scenario's requests. */
export interface Entrance {
  path: string;
  headers: Readonly<Record<string, string>>;
  model: string;
}

/** Command that starts a process. */
export interface Command {
  program: string;
  args: readonly string[];
  cwd?: string;
  env?: Readonly<Record<string, string>>;
}

/** A program to measure. */
export interface Target {
  name: string;
  /** Name and version for the reader of the results. */
  about: string;
  /** Undefined where it cannot do that. */
  entrance(scenario: Pick<Scenario, "client" | "upstream" | "play">): Entrance | undefined;
  /** Absent: it is the upstream itself. */
  command?(port: number): Command | Promise<Command>;
  /** Size of its executable in bytes, if it is one file. */
  fileBytes?: number;
}

/** Path of each protocol. */
export const PATHS = { chat: "chat/completions", responses: "responses", messages: "messages" } as const;

/** Credential for targets that do not check it. */
export const AUTHORIZATION = { authorization: `Bearer sk-${"0".repeat(40)}` };

/** The upstream alone: the cost of clients, upstream and sockets. */
export function direct(): Target {
  return {
    name: "direct",
    about: "the upstream itself",
    entrance: ({ upstream, play }) => upstreamEntrance(upstream, play),
  };
}

function upstreamEntrance(protocol: Scenario["upstream"], play: Scenario["play"]): Entrance {
  return { path: `/${play}/v1/${PATHS[protocol]}`, headers: AUTHORIZATION, model: "m" };
}

/** nginx as a reverse proxy with one worker. `folder` is for its files. */
export async function nginx(folder: string, upstreamPort: number): Promise<Target> {
  const version = await firstLine("nginx", ["-v"]);
  await Deno.mkdir(`${folder}/logs`, { recursive: true });
  return {
    name: "nginx",
    about: version,
    entrance: ({ client, upstream, play }) => client === upstream ? upstreamEntrance(upstream, play) : undefined,
    async command(port) {
      const path = `${folder}/nginx.conf`;
      await Deno.writeTextFile(path, nginxConfig({ folder, port, upstreamPort }));
      return { program: "nginx", args: ["-p", folder, "-c", path] };
    },
  };
}

function nginxConfig({ folder, port, upstreamPort }: { folder: string; port: number; upstreamPort: number }): string {
  return `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/logs/error.log;
events { worker_connections 16000; }
http {
  access_log off; client_max_body_size 64m; client_body_buffer_size 2m; proxy_temp_path ${folder}; client_body_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  keepalive_requests 100000000;
  upstream u { server 127.0.0.1:${upstreamPort}; keepalive 1000; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://u; proxy_http_version 1.1; proxy_set_header connection ""; proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`;
}

/** Options of a program of this folder. */
export interface DenoProgram {
  name: string;
  file: string;
  /** True if it translates. */
  cross: boolean;
  upstreamPort: number;
  /** Arguments besides its port and the upstream. */
  args?: readonly string[];
  /** Flags of Deno besides the usual ones. */
  flags?: readonly string[];
}

/** A program of this folder: the passthrough, the yardstick or a floor. */
export function denoProgram({ name, file, cross, upstreamPort, args = [], flags = [] }: DenoProgram): Target {
  return {
    name,
    about: `Deno ${Deno.version.deno}`,
    entrance({ client, upstream, play }) {
      const entrance = upstreamEntrance(client, play);
      if (client === upstream) return entrance;
      const isTranslated = cross && client === "chat" && upstream === "messages";
      return isTranslated ? { ...entrance, path: `/cross${entrance.path}` } : undefined;
    },
    command: (port) => ({
      program: Deno.execPath(),
      args: [
        ...["run", "--quiet", "--no-check", "--allow-net", ...flags, new URL(file, import.meta.url).pathname],
        ...[String(port), `http://127.0.0.1:${upstreamPort}`, ...args],
      ],
    }),
  };
}

/** Runs a command to its end. @throws {Error} if there is none, or it fails */
export async function firstLine(program: string, args: readonly string[]): Promise<string> {
  const command = new Deno.Command(program, { args: [...args], stdin: "null", stdout: "piped", stderr: "piped" });
  const { code, stdout, stderr } = await command.output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim()) as [string, string];
  if (code !== 0) throw new Error(`Cannot run ${program}: ${err || out}`);
  return (out || err).split("\n")[0] ?? "";
}
