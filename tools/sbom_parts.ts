/** Reads the packages of an executable: the lock file lists them, and the folder of npm packages has their licences. */
import { type BundledCode, CHOSEN, LEFT_OUT, PIECES } from "./sbom_rules.ts";

/** The lock file, as far as it is read here. */
interface Lock {
  npm?: Record<string, { integrity: string; dependencies?: string[] }>;
}

/** A package in the executable, without the files that are left out. */
export interface Part {
  name: string;
  version: string;
  /** `sha512-` and the hash of the package's archive in base64. */
  integrity: string;
  /** Names of the packages that it depends on. */
  dependencies: readonly string[];
  /** The licence that the package declares, as an SPDX expression. */
  declared: string;
  /** The licence under which it is used here. */
  license: string;
  /** Licences and notices that the package contains, sorted by name of file. */
  texts: readonly { file: string; text: string }[];
  /** Scripts that npm would run when it is installed. */
  installScripts: readonly string[];
  homepage: string;
  /** Third-party code in the package, as far as executables have it. */
  pieces: readonly BundledCode[];
  /** Its folder on this machine. */
  folder: string;
}

/** The sources of the list. */
export interface PartSources {
  /** Text of `deno.lock`. */
  lock: string;
  /** Deno's folder of npm packages: `npmCache` of `deno info --json`. */
  cache: string;
}

/** Scripts that npm runs when it installs a package from a registry. `prepare` and others run for its authors only. */
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall"];

/** Reads all packages of the lock file, sorted. @throws {Error} for a package that is missing in the cache */
export async function readParts({ lock, cache }: PartSources): Promise<Part[]> {
  const { npm = {} }: Lock = JSON.parse(lock);
  const parts = Object.entries(npm).map(([id, row]) => readPart({ ...packageOf(id), row, cache }));
  return (await Promise.all(parts)).sort((a, b) => a.name < b.name ? -1 : 1);
}

async function readPart(
  { name, version, row, cache }: {
    name: string;
    version: string;
    row: { integrity: string; dependencies?: string[] };
    cache: string;
  },
): Promise<Part> {
  const folder = await findPackage({ name, version, cache });
  const { license, scripts, homepage, repository } = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  if (typeof license !== "string") throw new Error(`Cannot list ${name}@${version}: its package.json names no licence`);
  return {
    name,
    version,
    integrity: row.integrity,
    dependencies: (row.dependencies ?? []).map((dependency) => dependency.replace(/(?<=.)@.*$/, "")),
    declared: license,
    license: CHOSEN[license] ?? license,
    texts: await readTexts(folder),
    installScripts: INSTALL_SCRIPTS.filter((script) => script in (scripts ?? {})),
    homepage: homepageOf(repository) ?? homepage ?? `https://www.npmjs.com/package/${name}`,
    pieces: PIECES.filter(({ inside, where }) => inside === name && !isLeftOut(name, where)),
    folder,
  };
}

/** Splits a key of the lock file, such as `preact@11.2.0_zod@4.6.7`, and drops the peer dependencies after the `_`. */
export function packageOf(id: string): { name: string; version: string } {
  const withoutPeers = id.replace(/_.*$/, "");
  const at = withoutPeers.lastIndexOf("@");
  return { name: withoutPeers.slice(0, at), version: withoutPeers.slice(at + 1) };
}

/** Returns the folder of a package, from any registry. @throws {Error} if the cache does not have it */
async function findPackage(
  { name, version, cache }: { name: string; version: string; cache: string },
): Promise<string> {
  for await (const { name: registry } of Deno.readDir(cache)) {
    const folder = `${cache}/${registry}/${name}/${version}`;
    if (await Deno.stat(`${folder}/package.json`).then(() => true, () => false)) return folder;
  }
  throw new Error(`Cannot list ${name}@${version}: it is not in ${cache}; deno install --frozen puts it there`);
}

/** Reads the licences and notices of a package, except those of a licence that was not chosen (`LICENSE.AGPL-3.0`). */
async function readTexts(folder: string): Promise<Part["texts"]> {
  const texts: { file: string; text: string }[] = [];
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (!isFile || !/^(licen[cs]e|notice|copying)/i.test(name) || /AGPL/.test(name)) continue;
    texts.push({ file: name, text: await Deno.readTextFile(`${folder}/${name}`) });
  }
  return texts.sort((a, b) => a.file < b.file ? -1 : 1);
}

function homepageOf(repository: unknown): string | undefined {
  const url = typeof repository === "string" ? repository : (repository as { url?: string } | undefined)?.url;
  if (url === undefined) return undefined;
  const path = /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(url)?.[1];
  return path === undefined
    ? url.replace(/^git\+|\.git$/g, "").replace(/^git:/, "https:")
    : `https://github.com/${path}`;
}

/**
 * Returns whether a file of a package is left out of executables. A path may be followed by more text, as in `PIECES`.
 */
export function isLeftOut(name: string, path: string): boolean {
  return LEFT_OUT.some((row) => row.package === name && (path === row.path || /^[/,]/.test(textAfter(path, row.path))));
}

function textAfter(path: string, start: string): string {
  return path.startsWith(start) ? path.slice(start.length) : "";
}
