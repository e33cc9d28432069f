/**
 * The steps of a release, which the workflow calls: `deno task release check TAG`, `compile TARGET`, `sums`,
 * `image ARCHITECTURE`. Builds are reproducible: they run in a fixed folder, from a copy of the sources and freshly
 * fetched packages. Needs Linux, and GNU tar and gzip for the archives.
 */
import denoJson from "../deno.json" with { type: "json" };
import { compileWords, pathsLeftOut } from "./left_out.ts";
import { packageOf } from "./sbom_parts.ts";
import { writeBom } from "./sbom.ts";

/** Build targets: Deno's name by the name in archives. */
export const TARGETS: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-gnu",
  "linux-arm64": "aarch64-unknown-linux-gnu",
  "macos-x64": "x86_64-apple-darwin",
  "macos-arm64": "aarch64-apple-darwin",
  "windows-x64": "x86_64-pc-windows-msvc",
  "windows-arm64": "aarch64-pc-windows-msvc",
};

/** Build folder. It is fixed because an executable contains paths. */
export const BUILD_FOLDER = "/tmp/sluice-release";
/** Folder of the finished release. */
export const OUTPUT_FOLDER = "build/release";
/** File with the checksums of all others in the folder, in the format of `sha256sum`. */
export const SUMS_FILE = "SHA256SUMS";

/** Bill of materials of the packages that were compiled in. */
const BOM_FILE = `${OUTPUT_FOLDER}/sluice.cdx.json`;
/**
 * Time of all files, in Unix seconds, since an executable contains the times of its files. The earliest that zip can
 * store.
 */
const FILE_TIME_S = 315_532_800;
/** Files and folders that an executable is built from. */
const SOURCES = ["deno.json", "deno.lock", "main.ts", "lib", "routes", "types"];
/** Files that an archive has besides the executable. */
const COMPANIONS = ["LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "sluice.example.jsonc"];

/** A Deno executable and its environment. */
export interface Compiler {
  deno: string;
  env?: Readonly<Record<string, string>>;
  /** A folder of npm packages to copy; absent: they are fetched, and checked against the lock file. */
  packages?: string;
}

/** Checks that a tag is that of this version, and that the change log has a section for it. @throws {Error} if not */
export function checkTag(tag: string, { version, changes }: { version: string; changes: string }): void {
  if (tag !== `v${version}`) throw new Error(`Cannot release "${tag}": deno.json has version ${version}`);
  const headings = [...changes.matchAll(/^## \[?v?([^\]\s]+)/gm)].map(([, heading]) => heading);
  if (!headings.includes(version)) throw new Error(`Cannot release "${tag}": CHANGELOG.md has no "## ${version}"`);
}

/** Returns the arguments of `deno` for one executable: those of the `compile` task, with a frozen lock file. */
export function compileArguments(
  { target, output, leftOut }: { target?: string; output: string; leftOut: readonly string[] },
): string[] {
  const [, compile = "", ...words] = compileWords(leftOut);
  if (!words.includes("build/sluice")) throw new Error("Cannot compile: the task writes another file");
  return [
    compile,
    // The gate has checked types already.
    "--no-check",
    "--frozen",
    ...(target !== undefined ? ["--target", target] : []),
    ...words.map((word) => word === "build/sluice" ? output : word),
  ];
}

/** Builds the executable from the sources of the working folder. Returns its path. @throws {Error} if a step fails */
export async function compileRelease({ deno, env, packages }: Compiler, target?: string): Promise<string> {
  const sources = `${BUILD_FOLDER}/src`;
  const cache = `${BUILD_FOLDER}/deno`;
  for (const folder of [sources, `${cache}/npm`]) await Deno.remove(folder, { recursive: true }).catch(ignoreAbsent);
  await Deno.mkdir(sources, { recursive: true });
  for (const path of SOURCES) await copy(path, `${sources}/${path}`);
  if (packages !== undefined) await copyPackages(packages, `${cache}/npm`);
  const options = { cwd: sources, env: { ...env, DENO_DIR: cache } };
  await run(deno, { args: ["install", "--frozen"], ...options });
  for (const folder of [sources, `${cache}/npm`]) await setTimes(folder);
  // It gets its final name already, because an executable finds its own files by its name.
  const output = `${BUILD_FOLDER}/out/sluice${target?.includes("windows") ? ".exe" : ""}`;
  await Deno.mkdir(`${BUILD_FOLDER}/out`, { recursive: true });
  const args = compileArguments({
    ...(target !== undefined && { target }),
    output,
    leftOut: await pathsLeftOut(`${cache}/npm`),
  });
  await run(deno, { args, ...options });
  return output;
}

/** Copies the packages of the lock file, with the registry's data about their versions. */
async function copyPackages(from: string, to: string): Promise<void> {
  const ids = Object.keys(JSON.parse(await Deno.readTextFile("deno.lock")).npm);
  for await (const { name: registry } of Deno.readDir(from)) {
    for (const id of ids) {
      const { name, version } = packageOf(id);
      const folder = `${registry}/${name}`;
      if (await Deno.stat(`${from}/${folder}/${version}`).then(() => false, () => true)) continue;
      await Deno.mkdir(`${to}/${folder}`, { recursive: true });
      for (const part of ["registry.json", version]) await copy(`${from}/${folder}/${part}`, `${to}/${folder}/${part}`);
    }
  }
}

/**
 * Packs the executable of a target with its companions. The same files give the same bytes. Returns the archive's path.
 */
export async function pack(executable: string, name: string): Promise<string> {
  const stem = `sluice-${denoJson.version}-${name}`;
  const folder = `${BUILD_FOLDER}/pack/${stem}`;
  await Deno.remove(folder, { recursive: true }).catch(ignoreAbsent);
  await Deno.mkdir(folder, { recursive: true });
  await Deno.mkdir(OUTPUT_FOLDER, { recursive: true });
  await Deno.copyFile(executable, `${folder}/${executable.replace(/^.*\//, "")}`);
  for (const file of COMPANIONS) await Deno.copyFile(file, `${folder}/${file}`);
  const archive = `${OUTPUT_FOLDER}/${stem}.tar.gz`;
  const args = ["--sort=name", `--mtime=@${FILE_TIME_S}`, "--owner=0", "--group=0", "--numeric-owner"];
  const modes = ["--format=ustar", "--mode=u+rwX,go+rX,go-w", "--use-compress-program=gzip -n"];
  await run("tar", { args: [...args, ...modes, "-cf", archive, "-C", `${BUILD_FOLDER}/pack`, stem] });
  return archive;
}

/** Returns the checksums of the files in a folder, as lines in the format of `sha256sum`, sorted by name. */
export async function sumsOf(folder: string): Promise<string> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const names = entries.filter(({ name, isFile }) => isFile && name !== SUMS_FILE).map(({ name }) => name).sort();
  const lines = names.map(async (name) => `${await sha256(`${folder}/${name}`)}  ${name}\n`);
  return (await Promise.all(lines)).join("");
}

async function sha256(path: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Lays out a folder that replaces the first stage of the Dockerfile, so that the image contains the released
 * executable: `docker buildx build --build-context build=FOLDER`. Returns the folder.
 */
export async function layOutImage(architecture: string): Promise<string> {
  const name = { amd64: "linux-x64", arm64: "linux-arm64" }[architecture];
  if (name === undefined) throw new Error(`Cannot lay out an image for "${architecture}": expected amd64 or arm64`);
  const folder = `build/image-${architecture}`;
  const stem = `sluice-${denoJson.version}-${name}`;
  await Deno.remove(folder, { recursive: true }).catch(ignoreAbsent);
  for (const path of ["src/build", "stage/var/lib/sluice/data"]) {
    await Deno.mkdir(`${folder}/${path}`, { recursive: true });
  }
  const out = ["-C", `${folder}/src/build`, "--strip-components=1"];
  await run("tar", { args: ["-xzf", `${OUTPUT_FOLDER}/${stem}.tar.gz`, ...out, `${stem}/sluice`] });
  return folder;
}

/** Copies a file, or a folder with everything in it. */
async function copy(from: string, to: string): Promise<void> {
  if (!(await Deno.stat(from)).isDirectory) return await Deno.copyFile(from, to);
  await Deno.mkdir(to);
  for await (const { name } of Deno.readDir(from)) await copy(`${from}/${name}`, `${to}/${name}`);
}

/** Sets the times of a file, or of a folder and everything in it. */
async function setTimes(path: string): Promise<void> {
  const { isDirectory } = await Deno.lstat(path);
  if (isDirectory) { for await (const { name } of Deno.readDir(path)) await setTimes(`${path}/${name}`); }
  await Deno.utime(path, FILE_TIME_S, FILE_TIME_S);
}

function ignoreAbsent(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** Runs a command without output. @throws {Error} with its standard error if it fails */
async function run(command: string, options: { args: string[]; cwd?: string; env?: Record<string, string> }) {
  const { code, stderr } = await new Deno.Command(command, { ...options, stdin: "null", stdout: "null" }).output();
  if (code === 0) return;
  throw new Error(`Cannot run ${command} ${options.args[0]}: ${new TextDecoder().decode(stderr).slice(-4000)}`);
}

if (import.meta.main) {
  const [verb = "", operand = ""] = Deno.args;
  if (verb === "check") {
    checkTag(operand, { version: denoJson.version, changes: await Deno.readTextFile("CHANGELOG.md") });
  } else if (verb === "compile") {
    const names = operand === "all" ? Object.keys(TARGETS) : [operand];
    for (const name of names) {
      const target = TARGETS[name];
      if (target === undefined) throw new Error(`Cannot compile for "${name}": expected all, ${Object.keys(TARGETS)}`);
      await pack(await compileRelease({ deno: Deno.execPath() }, target), name);
    }
  } else if (verb === "sums") {
    await writeBom(BOM_FILE, `${BUILD_FOLDER}/deno/npm`);
    await Deno.writeTextFile(`${OUTPUT_FOLDER}/${SUMS_FILE}`, await sumsOf(OUTPUT_FOLDER));
  } else if (verb === "image") {
    await layOutImage(operand);
  } else throw new Error(`Cannot do "${verb}": expected check, compile, sums or image`);
}
