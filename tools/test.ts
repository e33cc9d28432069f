/**
 * Runs the tests: `deno task test` runs the fast ones, which need nothing but npm, `deno task test:all` all of them.
 * The last lines of the output are the reasons for skipped tests, and `N passed, N failed`.
 */
import { HAS_POSTGRES, HAS_REDIS, makePostgresData, startPostgres, startRedis } from "../tests/support/databases.ts";

const ROOT = new URL("..", import.meta.url).pathname;

/** Files that `deno task test` leaves out, by reason. */
export const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  "Clusters, databases that stop, proxies, crashes, commands of the documentation": [
    "tests/e2e/nodes/",
    "tests/e2e/deploy/",
    "tests/e2e/fault/rehearsal_test.ts",
    "tests/e2e/program/",
    "tests/e2e/docs/",
    "tests/limits/nodes_test.ts",
    "tests/limits/outages_test.ts",
  ],
  "Compiled executables and releases": [
    "tests/e2e/compile/",
    "tests/e2e/permissions/",
    "tests/tools/release_test.ts",
  ],
  "The benchmark suite": ["tests/bench/suite_test.ts"],
  "The console in a browser": ["tests/browser/"],
};

/** Files that change or measure their whole process: they run in a process of their own, one after the other. */
export const ALONE: readonly string[] = [
  "tests/e2e/fault/matrix_test.ts", // Measures its memory.
  "tests/cli/shutdown_test.ts", // Sends signals to itself.
  "tests/http1/load_test.ts", // Counts open descriptors.
  "tests/tools/release_test.ts", // Changes the current folder.
];

/**
 * Tests that take longest, by kind, and how many files of the kind a module has on average. They begin first, in
 * modules of few files, because they mostly wait. Tests of the program share its processes, so they are in two modules.
 */
const LONG: readonly { files: number; paths: readonly string[] }[] = [
  { files: 1, paths: ["tests/e2e/docs/"] },
  { files: 1, paths: ["tests/billing/simulator/"] },
  {
    files: 25,
    paths: [
      "tests/cli/",
      "tests/e2e/access/secrets_test.ts",
      "tests/e2e/admin/",
      "tests/e2e/alerts/",
      "tests/e2e/billing/prices_test.ts",
      "tests/e2e/request/user_budgets_test.ts",
    ],
  },
  { files: 1, paths: ["tests/e2e/request/phase_limits_test.ts"] },
  { files: 1, paths: ["tests/bench/"] },
  { files: 3, paths: ["tests/e2e/nodes/"] },
  { files: 5, paths: ["tests/e2e/program/"] },
  { files: 3, paths: ["tests/e2e/deploy/"] },
  { files: 3, paths: ["tests/e2e/fault/"] },
  { files: 1, paths: ["tests/e2e/permissions/"] },
  { files: 1, paths: ["tests/e2e/compile/"] },
  { files: 3, paths: ["tests/limits/nodes_test.ts", "tests/limits/outages_test.ts"] },
  { files: 1, paths: ["tests/e2e/images/long_test.ts"] },
  { files: 3, paths: ["tests/store/outage/"] },
  { files: 3, paths: ["tests/store/postgres/"] },
  { files: 1, paths: ["tests/upstreams/embedded/canvas_test.ts"] },
];

/** The kind of the tests of the program. */
const PROGRAM = LONG.findIndex(({ paths }) => paths.includes("tests/cli/"));

/** Files whose results depend on all secrets that their module remembers, so that no other file may share it. */
const UNSHARED: readonly string[] = ["tests/redact_test.ts", "tests/doctor/findings_test.ts"];

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

/** One run of `deno test`. */
interface Group {
  name: string;
  /** Arguments of `deno test`. */
  args: readonly string[];
  /** Its test files. */
  files: readonly string[];
  /**
   * The files of each module to write, which imports them: each module loads the gateway again, in 0.6 s of CPU time.
   */
  bundles?: readonly (readonly string[])[];
}

/**
 * V8 compiles each function with its first call, which saves a tenth of the CPU time, since a test never calls most of
 * them. Tests of memory need to collect garbage before they measure.
 */
const V8_FLAGS = ["--v8-flags=--max-lazy,--expose-gc"];

/** Longest time without output, in milliseconds. A test that is silent for longer probably never ends. */
const MAX_SILENCE_MS = 300_000;

/** Average number of files per module when all tests run. The tests of a module run one after the other. */
const BUNDLE_FILES = 40;

/** Number of modules when the fast tests run. Each compiles the gateway again, so that few take less CPU time. */
const FAST_BUNDLES = 4;

/** The counts of one run. */
export interface TestCounts {
  passed: number;
  failed: number;
}

/**
 * Returns the runs of `deno task test`, or with `all` of `deno task test:all`. The others run one after the other beside
 * the first, so that the cores are about equally busy from the beginning to the end.
 */
export function groupsOf(all: boolean): Group[] {
  const leftOut = all ? [] : Object.values(LEFT_OUT).flat();
  const isIn = (prefixes: readonly string[]) => (file: string) => prefixes.some((prefix) => file.startsWith(prefix));
  const included = testFiles("tests/").filter((file) => !isIn(["tests/heavy/", ...leftOut])(file));
  const isClients = isIn(["tests/clients/"]);
  const isBrowser = isIn(["tests/browser/"]);
  const isAlone = isIn(ALONE);
  const clients = included.filter(isClients);
  const gateway = included.filter((file) => !isClients(file) && !isBrowser(file) && !isAlone(file));
  const groups: Group[] = [
    {
      name: "the gateway",
      args: ["--parallel"],
      files: gateway,
      bundles: all ? bundlesOf(gateway) : evenBundlesOf(gateway, FAST_BUNDLES),
    },
    {
      name: "official clients",
      args: ["--config", "tests/clients/deno.json"],
      files: clients,
      // To load the SDKs and to start its three gateways takes 5 s of CPU time.
      bundles: [clients],
    },
    { name: "one after the other", args: [], files: included.filter(isAlone) },
    {
      name: "the browser",
      args: ["--config", "tests/browser/deno.json"],
      files: included.filter(isBrowser),
    },
    {
      name: "WebAssembly",
      args: ["--config", "tools/wasm/deno.json"],
      files: testFiles("tools/wasm/"),
    },
  ];
  return groups.filter(({ files }) => files.length > 0);
}

/** Lists the test files in a folder and below it, as paths from the root of the repository. */
function testFiles(folder: string): string[] {
  const entries = [...Deno.readDirSync(ROOT + folder)].sort((a, b) => a.name < b.name ? -1 : 1);
  return entries.flatMap(({ name, isDirectory }) => {
    if (isDirectory) return testFiles(`${folder}${name}/`);
    return name.endsWith("_test.ts") ? [folder + name] : [];
  });
}

/** Number of modules that mostly wait for each that mostly computes. Some of the latter are left for the end of a run. */
const ALONE_PER_BUNDLE = 3;

/** Returns the files of each module of a group. The longest begin first, so that no core is idle at the end. */
function bundlesOf(files: readonly string[]): string[][] {
  const { long, others } = byLength(files);
  const [endToEnd = [], unit = []] = [true, false].map((isEndToEnd) =>
    others.filter((file) => file.startsWith("tests/e2e/") === isEndToEnd)
  );
  const alone = [...longBundles(long), ...unit.filter(isUnshared).map((file) => [file])];
  const shared = [endToEnd, unit.filter((file) => !isUnshared(file))];
  const bundles = shared.flatMap((group) => mixed(group, Math.max(2, Math.ceil(group.length / BUNDLE_FILES))));
  return [
    ...bundles.flatMap((bundle, index) => [
      ...alone.slice(index * ALONE_PER_BUNDLE, (index + 1) * ALONE_PER_BUNDLE),
      bundle,
    ]),
    ...alone.slice(bundles.length * ALONE_PER_BUNDLE),
  ];
}

/** Returns the files of each module of long tests: those of one kind share modules. */
function longBundles(files: readonly string[]): string[][] {
  return LONG.flatMap((kind, index) => {
    const alike = files.filter((file) => longKind(file) === index);
    return mixed(alike, Math.ceil(alike.length / kind.files));
  });
}

/** The index of a file's kind in `LONG`; -1 if it is not long. */
function longKind(file: string): number {
  return LONG.findIndex(({ paths }) => paths.some((path) => file.startsWith(path)));
}

/** Distributes all files over an even number of modules. One half has all tests of the program, and so its processes. */
function evenBundlesOf(files: readonly string[], bundles: number): string[][] {
  const { long, others } = byLength(files.filter((file) => !isUnshared(file)));
  const isOfProgram = (file: string) => longKind(file) === PROGRAM;
  const program = long.filter(isOfProgram);
  const rest = [...long.filter((file) => !isOfProgram(file)), ...others];
  const halves = [program, rest.splice(0, program.length)].flatMap((half) => mixed(half, bundles / 2));
  const shares = mixed(rest, bundles);
  return [
    ...halves.map((half, index) => [...half, ...shares[index] ?? []]),
    ...files.filter(isUnshared).map((file) => [file]),
  ];
}

function isUnshared(file: string): boolean {
  return UNSHARED.includes(file);
}

/** Distributes files over modules that take about equally long: neighbours are alike, so each gets every n-th file. */
function mixed(files: readonly string[], wantedCount: number): string[][] {
  const count = Math.min(wantedCount, files.length);
  return Array.from({ length: count }, (_, shard) => files.filter((_, index) => index % count === shard));
}

/** Separates the long tests, in the order of `LONG`, from the others. */
function byLength(files: readonly string[]): { long: string[]; others: string[] } {
  return {
    long: files.filter((file) => longKind(file) >= 0).sort((a, b) => longKind(a) - longKind(b)),
    others: files.filter((file) => longKind(file) < 0),
  };
}

/** Writes modules that import these files. Returns their paths, in the order in which `deno test` runs them. */
function writeBundles(bundles: readonly (readonly string[])[], folder: string): string[] {
  return bundles.map((files, index) => {
    const imports = files.map((file) => `import ${JSON.stringify(new URL(ROOT + file, "file:").href)};\n`);
    const name = files[0]?.slice(0, -"_test.ts".length).replaceAll("/", "_");
    const path = `${folder}/${String(index).padStart(3, "0")}_${name}_test.ts`;
    Deno.writeTextFileSync(path, imports.join(""));
    return path;
  });
}

/** Reads the counts from the last line of `deno test`; `undefined` if the output has none. */
export function readCounts(output: string): TestCounts | undefined {
  // deno-lint-ignore no-control-regex
  const plain = output.replaceAll(/\x1b\[[0-9;]*m/g, "");
  const line = [...plain.matchAll(/^(?:ok|FAILED) \| (\d+) passed.*? \| (\d+) failed/gm)].at(
    -1,
  );
  if (line === undefined) return undefined;
  return { passed: Number(line[1]), failed: Number(line[2]) };
}

/** Runs one group. */
function runGroup(
  { name, args, files, bundles }: Group,
  { env, folder, write }: {
    env: Record<string, string>;
    folder: string;
    write: (chunk: Uint8Array) => void;
  },
): Promise<TestCounts> {
  write(new TextEncoder().encode(`== ${name}\n`));
  const modules = bundles === undefined ? files : writeBundles(bundles, folder);
  return runDenoTest([...V8_FLAGS, "--no-check", "--no-prompt", "--allow-all", ...args, ...modules], { env, write });
}

/**
 * Runs `deno test`. If it fails without reporting a count, that is one failure. If it prints nothing for too long, it
 * is interrupted, and Deno prints the names of the pending tests.
 */
export async function runDenoTest(
  args: readonly string[],
  { env, write, maxSilenceMs = MAX_SILENCE_MS }: {
    env: Record<string, string>;
    write: (chunk: Uint8Array) => void;
    maxSilenceMs?: number;
  },
): Promise<TestCounts> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", ...args],
    cwd: ROOT,
    env,
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const interrupt = () => child.kill("SIGINT");
  let silence = setTimeout(interrupt, maxSilenceMs);
  const decoder = new TextDecoder();
  let tail = "";
  for await (const chunk of child.stdout) {
    clearTimeout(silence);
    silence = setTimeout(interrupt, maxSilenceMs);
    write(chunk);
    tail = (tail + decoder.decode(chunk, { stream: true })).slice(-10_000);
  }
  clearTimeout(silence);
  const { success } = await child.status;
  const counts = readCounts(tail) ?? { passed: 0, failed: 0 };
  return success ? counts : { ...counts, failed: Math.max(1, counts.failed) };
}

/** Runs groups, and shows the output of the first at once, that of the others after it has ended. */
async function runGroups(
  [first, ...others]: readonly Group[],
  options: { env: Record<string, string>; folder: string },
): Promise<TestCounts> {
  const show = (chunk: Uint8Array) => {
    for (let at = 0; at < chunk.length;) at += Deno.stdout.writeSync(chunk.subarray(at));
  };
  let buffered: Uint8Array[] | undefined = [];
  const write = (chunk: Uint8Array) => buffered === undefined ? show(chunk) : void buffered.push(chunk);
  const total: TestCounts = { passed: 0, failed: 0 };
  async function run(groups: readonly Group[], write: (chunk: Uint8Array) => void): Promise<void> {
    for (const group of groups) {
      const { passed, failed } = await runGroup(group, { ...options, write });
      total.passed += passed;
      total.failed += failed;
    }
  }
  const beside = run(others, write);
  await run(first === undefined ? [] : [first], show);
  for (const chunk of buffered) show(chunk);
  buffered = undefined;
  await beside;
  return total;
}

/** Starts the databases that tests share, unless the environment names them. Returns their addresses as variables. */
async function startDatabases(resources: AsyncDisposableStack): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  if (HAS_POSTGRES) {
    Object.assign(env, resources.use(await makePostgresData()).variables);
    for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
    env.SLUICE_TEST_POSTGRES = Deno.env.get("SLUICE_TEST_POSTGRES") || resources.use(await startPostgres()).url;
  }
  if (HAS_REDIS && !Deno.env.get("SLUICE_TEST_REDIS")) {
    env.SLUICE_TEST_REDIS = resources.use(await startRedis()).url;
  }
  return env;
}

/** Returns one line for each reason for skipped tests. */
function skippedLines(notes: string, all: boolean): string[] {
  const reasons = notes.split("\n").filter((line) => line !== "");
  const files = all ? [] : Object.keys(LEFT_OUT).map((what) => `${what}: run \`deno task test:all\``);
  return [...new Set([...files, ...reasons])].sort();
}

async function main(all: boolean): Promise<number> {
  await using resources = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir();
  resources.defer(() => Deno.remove(folder, { recursive: true }));
  const notes = `${folder}/notes`;
  await Deno.writeTextFile(notes, "");
  // Many tests wait for sockets and disks, so there are more jobs than cores. All modules of the fast tests run at once.
  // More jobs than two per core take more CPU time, because a run of all tests has other groups beside these.
  const jobs = Deno.env.get("DENO_JOBS") ?? String(Math.max(all ? 0 : FAST_BUNDLES, navigator.hardwareConcurrency * 2));
  const env = {
    DENO_JOBS: jobs,
    SLUICE_TEST_NOTES: notes,
    SLUICE_TEST_PERCENT: "10",
    ...(all ? await startDatabases(resources) : { SLUICE_TEST_QUICK: "1" }),
  };
  const total = await runGroups(groupsOf(all), { env, folder });
  const skipped = skippedLines(await Deno.readTextFile(notes), all);
  if (skipped.length > 0) print(`\nNot run:\n${skipped.map((line) => `  ${line}\n`).join("")}\n`);
  print(`${total.passed} passed, ${total.failed} failed\n`);
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args.includes("--all")));
