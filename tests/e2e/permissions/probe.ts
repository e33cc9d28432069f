/** Attempts what the executable must not be able to do, and prints each outcome as JSON. */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { networkInterfaces } from "node:os";
import { runInNewContext } from "node:vm";

const [outside = "", library = "", code = "", ...addresses] = Deno.args;

/** Node's API does not report why a program did not run, so the file it would have created is checked. */
function touchByNode(path: string): void {
  try {
    execFileSync("/bin/touch", [path]);
  } catch {
    // The next line checks this.
  }
  Deno.statSync(path);
}

/** Listens on a path inside the folder, and connects. */
async function connectWithin(path: string): Promise<void> {
  using _listener = Deno.listen({ transport: "unix", path });
  (await Deno.connect({ transport: "unix", path })).close();
}

/** A worker with rights that its parent does not have. */
function startWorker(): void {
  const options: WorkerOptions = { type: "module", deno: { permissions: { run: true } } };
  new Worker("data:text/javascript,", options).terminate();
}

const TRIES: Readonly<Record<string, () => unknown>> = {
  "run a program": () => new Deno.Command("/bin/true").outputSync(),
  "run a program by node": () => touchByNode("./data/made-by-a-program"),
  "read a file": () => Deno.readTextFileSync(outside),
  "read /etc/passwd": () => Deno.readTextFileSync("/etc/passwd"),
  "read /proc/self/environ": () => Deno.readTextFileSync("/proc/self/environ"),
  "read above the folder": () => Deno.readTextFileSync("../nothing"),
  "write a file": () => Deno.writeTextFileSync(outside, ""),
  "write beside the store": () => Deno.writeTextFileSync("./sluice.jsonc", "{}"),
  "write to /tmp": () => Deno.writeTextFileSync("/tmp/sluice-probe", ""),
  "link out of the store": () => Deno.symlinkSync("/etc/passwd", "./data/passwd"),
  "load native code": () => Deno.dlopen(library, {}),
  "load native code by node": () => createRequire("file:///")(outside.replace(/[^/]*$/, "addon.node")),
  "evaluate a string": () => globalThis["eval"]("1"),
  "make a function of a string": () => Function("return 1")(),
  // Two ways that neither permissions nor flags close: strings can be run as code, but with no more rights than the
  // program.
  "run a string by node": () => runInNewContext("1"),
  "import a string": () => import(`data:text/javascript,export default ${Deno.args.length}`),
  "give a worker more rights": startWorker,
  "ask for more rights": async () => {
    if ((await Deno.permissions.request({ name: "run" })).state !== "granted") throw new Deno.errors.NotCapable();
  },
  "overwrite the executable": () => Deno.openSync(Deno.execPath(), { write: true }).close(),
  "ask the system": () => Deno.hostname(),
  "ask the system by node": () => networkInterfaces(),
  "connect to a socket": () => Deno.connect({ transport: "unix", path: outside.replace(/[^/]*$/, "socket") }),
  "send a signal": () => Deno.kill(Deno.pid + 1, "SIGUSR1"),
  "import over the network": () => import(code),
  // Permitted actions: they show that the attempts work at all.
  "read the configuration": () => Deno.readTextFileSync("./allowed.txt"),
  "write the store": () => Deno.writeTextFileSync("./data/allowed", ""),
  "connect to a socket beside the store": () => connectWithin(`${Deno.cwd()}/data/socket`),
};

/** Name of an error; Node's interfaces wrap those of Deno. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "failed";
  return /^Requires \w+ access/.test(error.message) ? "NotCapable" : error.name;
}

const found: Record<string, string> = {};
for (const [what, attempt] of Object.entries(TRIES)) {
  try {
    await attempt();
    found[what] = "done";
  } catch (error) {
    found[what] = nameOf(error);
  }
}
for (const address of addresses) {
  const [hostname = "", port = ""] = address.split(" ");
  try {
    (await Deno.connect({ hostname, port: Number(port) })).close();
    found[`connect to ${hostname}`] = "done";
  } catch (error) {
    found[`connect to ${hostname}`] = nameOf(error);
  }
}
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify(found)));
