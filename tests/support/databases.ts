/** Real Postgres and Redis servers for tests: those named by the environment, or new ones of the test. */
import { statfsSync } from "node:fs";
import { setPriority } from "node:os";
import { Secret } from "../../lib/secret.ts";
import { connect as connectPostgres, type Sql } from "../../lib/store/postgres/client.ts";
import { findProgram, QUICK, skipIf } from "./skip.ts";
import { until } from "./soon.ts";
import { type ReservedPort, reservePort } from "./ports.ts";

/** Folders of the programs of databases, besides those in PATH. */
const POSTGRES_FOLDERS = [18, 17, 16, 15, 14, 13].map((version) => `/usr/lib/postgresql/${version}/bin`);

/** A server of the test's own, which it may stop and start. */
export interface Engine extends AsyncDisposable {
  /** Address, with the same port after every start. */
  readonly url: string;
  /** Starts it (again). Resolves when it answers. */
  start(): Promise<void>;
  /** Stops the server: immediately, as in a crash, or cleanly. Resolves when its port is closed. */
  stop(how?: "crash" | "orderly"): Promise<void>;
  /** Pauses or resumes it, like an overloaded machine or a broken network. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
}

/** True if tests may use Postgres and Redis: their programs are installed, and a quick run has servers that are named. */
export const HAS_POSTGRES: boolean = isThere("Postgres", findProgram("initdb", POSTGRES_FOLDERS));
export const HAS_REDIS: boolean = isThere("Redis", findProgram("redis-server") ?? findProgram("valkey-server"));

/** `Deno.test` for a test that needs Postgres, or Redis. */
export const postgresTest = HAS_POSTGRES ? Deno.test : Deno.test.ignore;
export const redisTest = HAS_REDIS ? Deno.test : Deno.test.ignore;

function isThere(name: "Postgres" | "Redis", program: string | undefined): boolean {
  if (skipIf(program === undefined, `${name} is not installed`)) return false;
  // A shell ends the servers of a process that was killed.
  if (skipIf(findProgram("sh") === undefined, "sh is not installed")) return false;
  const variable = `SLUICE_TEST_${name.toUpperCase()}`;
  return !skipIf(QUICK && !Deno.env.get(variable), `${name}: set ${variable} or run \`deno task test:all\``);
}

/** A Postgres server of the test's own, started. Its data are deleted with it. */
export async function startPostgres(): Promise<Engine> {
  return await startEngine(await preparePostgres());
}

/** A Redis server of the test's own, started. It loses its data at a restart. */
export async function startRedis(): Promise<Engine> {
  return await startEngine(await prepareRedis());
}

/** True of an answer by a gateway whose database a busy machine starves for seconds: its client sends the request again. */
export function isStarved(status: number, text: string): boolean {
  return status === 503 && /cannot write its ledger|Cannot reach the store/.test(text);
}

/** A folder in memory, and the free bytes that it must have. */
const MEMORY = "/dev/shm";
const ROOM_BYTES = 2 ** 31;

/** Makes a folder for data, in memory where possible: to make a database on a disk takes three times the CPU time. */
function makeDataFolder(): Promise<string> {
  const prefix = "sluice-postgres-";
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize > ROOM_BYTES) return Deno.makeTempDir({ prefix, dir: MEMORY });
  } catch {
    // Not every system has one.
  }
  return Deno.makeTempDir({ prefix });
}

/** The variable with a folder of initial data, which servers copy: creating the data takes a second of CPU time. */
const DATA_VARIABLE = "SLUICE_TEST_POSTGRES_DATA";

/**
 * Creates initial data for the servers of all processes with the variables. Disposing of the result deletes the data.
 */
export async function makePostgresData(): Promise<{ variables: Record<string, string> } & AsyncDisposable> {
  const folder = await makeDataFolder();
  await initialize(`${folder}/data`, await unprivileged(folder));
  return {
    variables: { [DATA_VARIABLE]: `${folder}/data` },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

async function initialize(data: string, who: Pick<Deno.CommandOptions, "uid" | "gid">): Promise<void> {
  const args = ["-D", data, "--no-sync", "-U", "sluice", "-A", "trust", "-E", "UTF8"];
  const initial = Deno.env.get(DATA_VARIABLE);
  if (initial === undefined) await run(need("initdb", POSTGRES_FOLDERS), args, who);
  else await run("cp", ["-r", initial, data], who);
}

async function preparePostgres(): Promise<EngineParts> {
  const folder = await makeDataFolder();
  const who = await unprivileged(folder);
  await initialize(`${folder}/data`, who);
  const reserved = reservePort();
  const { port } = reserved;
  const args = [
    ...["-D", `${folder}/data`, "-p", String(port), "-k", folder, "-h", "127.0.0.1"],
    ...["-c", "max_connections=200", "-c", "shared_buffers=32MB", "-c", "log_min_messages=fatal"],
    // A killed server needs no fsync: the system keeps what was written.
    ...["-c", "fsync=off", "-c", "max_wal_size=128MB"],
  ];
  const url = `postgres://sluice@127.0.0.1:${port}/postgres`;
  return {
    program: need("postgres", POSTGRES_FOLDERS),
    args,
    who,
    folder,
    url,
    reserved,
    isUp: () => postgresAnswers(url),
    // Immediate shutdown is a crash: the log is replayed at the next start. Fast is an orderly end.
    stops: { crash: "SIGQUIT", orderly: "SIGINT" },
  };
}

async function prepareRedis(): Promise<EngineParts> {
  const folder = await Deno.makeTempDir({ prefix: "sluice-redis-" });
  const reserved = reservePort();
  const { port } = reserved;
  return {
    program: findProgram("redis-server") ?? need("valkey-server"),
    args: ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder],
    who: {},
    folder,
    url: `redis://127.0.0.1:${port}`,
    reserved,
    isUp: () => redisAnswers(port),
    stops: { crash: "SIGKILL", orderly: "SIGTERM" },
  };
}

/**
 * The address of a fresh database, dropped at the end; in the server of `SLUICE_TEST_POSTGRES`, otherwise in one that
 * ends with this process. It is empty, or a copy of the one with the address `like`.
 */
export async function freshDatabase({ like }: { like?: string } = {}): Promise<{ url: string } & AsyncDisposable> {
  sharedPostgres ??= findPostgres();
  const server = await sharedPostgres;
  const name = `sluice_${crypto.randomUUID().replaceAll("-", "")}`;
  const template = like === undefined ? "template1" : new URL(like).pathname.slice(1);
  await command(server, async (sql) => {
    const [{ version } = { version: 0 }] = await sql<{ version: number }[]>`
      SELECT current_setting('server_version_num')::int AS version`;
    // The other strategy, which is the default since version 15, writes all pages to the log.
    await sql.unsafe(`CREATE DATABASE ${name} TEMPLATE ${template}${version < 150_000 ? "" : " STRATEGY file_copy"}`);
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    [Symbol.asyncDispose]: () => command(server, (sql) => sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)),
  };
}

/** The address of a Redis server: that of `SLUICE_TEST_REDIS`, otherwise one that ends with this process. */
export function someRedis(): Promise<string> {
  sharedRedis ??= findRedis();
  return sharedRedis;
}

let sharedPostgres: Promise<string> | undefined;
let sharedRedis: Promise<string> | undefined;

async function findPostgres(): Promise<string> {
  const named = Deno.env.get("SLUICE_TEST_POSTGRES") || undefined;
  return named ?? await leaveRunning(await preparePostgres());
}

async function findRedis(): Promise<string> {
  const named = Deno.env.get("SLUICE_TEST_REDIS") || undefined;
  return named ?? await leaveRunning(await prepareRedis());
}

/** Starts a server independently of any single test, and ends it with this process. */
async function leaveRunning({ program, args, who, folder, url, reserved, isUp, stops }: EngineParts): Promise<string> {
  const text = [program, ...args].map((word) => `'${word}'`).join(" ");
  const shell = new Deno.Command("sh", {
    args: ["-c", `${text} >/dev/null 2>&1 & echo $!`],
    cwd: folder,
    ...who,
    stdin: "null",
  });
  const pid = Number(new TextDecoder().decode((await shell.output()).stdout));
  raisePriority(pid);
  await endWithThisProcess(pid, { stops, folder });
  globalThis.addEventListener("unload", () => {
    Deno.kill(pid, stops.crash);
    Deno.removeSync(folder, { recursive: true });
  });
  await until(`start of ${program}`, isUp);
  reserved[Symbol.dispose]();
  return url;
}

/**
 * Lets a server, and the processes that it forks, compute before those of the tests, which keep all cores busy: a gateway
 * gives a store up that does not answer within two seconds. Only a user with rights can do that.
 */
function raisePriority(pid: number): void {
  try {
    setPriority(pid, -10);
  } catch {
    // Tests with a database allow for its silence, too.
  }
}

/** Ends a server within a second of this process, however that ends, and removes its folder. */
async function endWithThisProcess(
  pid: number,
  { stops, folder }: Pick<EngineParts, "stops" | "folder">,
): Promise<void> {
  const watch = 'while kill -0 "$1"; do kill -0 "$2" || exit; sleep 1; done; kill -s "$3" "$2"; rm -rf "$4"';
  await new Deno.Command("sh", {
    args: ["-c", `(${watch}) >/dev/null 2>&1 &`, "sh", String(Deno.pid), String(pid), stops.crash.slice(3), folder],
    cwd: "/",
    stdin: "null",
  }).output();
}

async function command(url: string, run: (sql: Sql) => Promise<unknown>): Promise<void> {
  const sql = connectPostgres(new Secret(url), 1);
  try {
    await run(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

interface EngineParts {
  program: string;
  args: string[];
  who: Pick<Deno.CommandOptions, "uid" | "gid">;
  folder: string;
  url: string;
  reserved: ReservedPort;
  isUp: () => Promise<boolean>;
  stops: Record<"crash" | "orderly", Deno.Signal>;
}

async function startEngine({ program, args, who, folder, url, reserved, isUp, stops }: EngineParts): Promise<Engine> {
  let child: Deno.ChildProcess | undefined;

  async function start(): Promise<void> {
    if (child !== undefined) return;
    child = new Deno.Command(program, { args, cwd: folder, ...who, stdin: "null", stdout: "null", stderr: "null" })
      .spawn();
    raisePriority(child.pid);
    await endWithThisProcess(child.pid, { stops, folder });
    await until(`start of ${program}`, isUp);
  }

  async function stop(how: "crash" | "orderly" = "crash"): Promise<void> {
    const running = child;
    child = undefined;
    if (running === undefined) return;
    signalAll(running.pid, "SIGCONT");
    running.kill(stops[how]);
    await running.status;
  }

  await start();
  return {
    url,
    start,
    stop,
    signal(signal) {
      if (child !== undefined) signalAll(child.pid, signal);
    },
    async [Symbol.asyncDispose]() {
      await stop();
      reserved[Symbol.dispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/**
 * Sends a signal to a server and its processes, of which it may have one for each connection. The server process gets
 * the signal first, so that it forks no further processes.
 */
function signalAll(pid: number, signal: "SIGSTOP" | "SIGCONT"): void {
  Deno.kill(pid, signal);
  // The list may miss processes while others end. It is complete once all listed processes are stopped.
  for (let isMore = true; isMore;) {
    isMore = false;
    for (const child of Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean)) {
      try {
        const isStopped = /\) T/.test(Deno.readTextFileSync(`/proc/${child}/stat`));
        if (isStopped === (signal === "SIGSTOP")) continue;
        Deno.kill(Number(child), signal);
        isMore = true;
      } catch (error) {
        // It has ended since.
        if (!(error instanceof Deno.errors.NotFound) && !/No such process/.test(String(error))) throw error;
      }
    }
  }
}

async function postgresAnswers(url: string): Promise<boolean> {
  const sql = connectPostgres(new Secret(url), 1);
  try {
    await sql`SELECT 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function redisAnswers(port: number): Promise<boolean> {
  try {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(new TextEncoder().encode("PING\r\n"));
    const answer = new Uint8Array(7);
    const read = await connection.read(answer);
    return new TextDecoder().decode(answer.subarray(0, read ?? 0)) === "+PONG\r\n";
  } catch {
    return false;
  }
}

/** Postgres refuses to run as root: its files belong to Debian's user for it, or to `nobody`. */
async function unprivileged(folder: string): Promise<Pick<Deno.CommandOptions, "uid" | "gid">> {
  if (Deno.uid() !== 0) return {};
  const users = await Deno.readTextFile("/etc/passwd");
  const [, uid = "65534", gid = "65534"] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(users) ?? [];
  await Deno.chown(folder, Number(uid), Number(gid));
  return { uid: Number(uid), gid: Number(gid) };
}

async function run(program: string, args: string[], who: Pick<Deno.CommandOptions, "uid" | "gid">): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, { args, cwd: "/", ...who }).output();
  if (!success) throw new Error(`Cannot run ${program}: ${new TextDecoder().decode(stderr)}`);
}

function need(name: string, folders: readonly string[] = []): string {
  const found = findProgram(name, folders);
  if (found === undefined) throw new Error(`Cannot start ${name}: there is no such program here`);
  return found;
}
