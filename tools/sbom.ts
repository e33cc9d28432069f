/** Writes the bill of materials of released executables, in the format CycloneDX 1.6. `deno task sbom` */
import { DatabaseSync } from "node:sqlite";
import denoJson from "../deno.json" with { type: "json" };
import { type Part, readParts } from "./sbom_parts.ts";
import { LEFT_OUT, RUNTIME } from "./sbom_rules.ts";

/** Output file of the task. */
const SBOM_FILE = "build/sluice.cdx.json";

/** A component in CycloneDX: a package or a piece of one. */
export interface Component {
  type: "application" | "library" | "platform" | "data";
  "bom-ref": string;
  name: string;
  version?: string;
  purl?: string;
  copyright?: string;
  description?: string;
  hashes?: { alg: string; content: string }[];
  licenses: { license: { id: string; acknowledgement: "declared" | "concluded" } }[];
  externalReferences?: { type: string; url: string }[];
  properties?: { name: string; value: string }[];
  components?: Component[];
}

/** The bill of materials, with the members of CycloneDX that are used here. */
export interface Bom {
  bomFormat: "CycloneDX";
  specVersion: "1.6";
  serialNumber: string;
  version: 1;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
  compositions: { aggregate: string; assemblies: string[] }[];
}

/** Inputs of the bill of materials. */
export interface BomSources {
  parts: readonly Part[];
  /** Versions of the runtime: `Deno.version`, and that of SQLite if it is known. */
  runtime: Readonly<{ deno: string; v8: string; sqlite?: string }>;
}

/**
 * Makes the bill of materials. Its serial number is derived from its content, so that the same sources give the same
 * bill.
 */
export async function bomOf({ parts, runtime }: BomSources): Promise<Bom> {
  const root = `pkg:generic/sluice@${denoJson.version}`;
  const direct = Object.values<string>(denoJson.imports).map((specifier) => /^npm:(@?[^@]+)@/.exec(specifier)?.[1]);
  const refs = new Map(parts.map((part) => [part.name, purlOf(part)]));
  const refOf = (name: string) => refs.get(name) ?? unknown(name);
  const bom: Bom = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: "",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": root,
        name: "sluice",
        version: denoJson.version,
        purl: root,
        licenses: [{ license: { id: denoJson.license, acknowledgement: "declared" } }],
        properties: LEFT_OUT.map(({ package: name, path, why }) => ({
          name: "sluice:left-out",
          value: `${name}/${path}: ${why}`,
        })),
      },
    },
    components: [...parts.map(componentOf), ...runtimeOf(runtime)],
    dependencies: [
      { ref: root, dependsOn: [...new Set(direct)].flatMap((name) => name === undefined ? [] : [refOf(name)]) },
      ...parts.map((part) => ({ ref: purlOf(part), dependsOn: part.dependencies.map(refOf) })),
    ],
    // Every package is listed; the crates that the runtime is made of are not.
    compositions: [
      { aggregate: "complete", assemblies: [...refs.values()] },
      { aggregate: "incomplete", assemblies: RUNTIME.map(({ key }) => `runtime:${key}`) },
    ],
  };
  return { ...bom, serialNumber: await serialNumberOf(JSON.stringify(bom)) };
}

/** Reports a dependency that the lock file does not have. */
function unknown(name: string): never {
  throw new Error(`Cannot list what needs "${name}": the lock file has no such package`);
}

function purlOf({ name, version }: { name: string; version: string }): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function componentOf(part: Part): Component {
  const { name, version, integrity, declared, license, homepage, pieces } = part;
  const purl = purlOf(part);
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    hashes: [{ alg: "SHA-512", content: hexOf(integrity) }],
    licenses: [{ license: { id: license, acknowledgement: license === declared ? "declared" : "concluded" } }],
    externalReferences: [{ type: "vcs", url: homepage }, {
      type: "distribution",
      url: `https://registry.npmjs.org/${name}/-/${name.replace(/^.*\//, "")}-${version}.tgz`,
    }],
    ...(license !== declared && { properties: [{ name: "sluice:license:declared", value: declared }] }),
    ...(pieces.length > 0 && {
      components: pieces.map((piece) => ({
        type: piece.where.startsWith("dist/ranks") ? "data" as const : "library" as const,
        "bom-ref": `${purl}#${piece.name}`,
        name: piece.name,
        description: piece.where,
        copyright: piece.copyright,
        licenses: [{ license: { id: piece.license, acknowledgement: "concluded" as const } }],
      })),
    }),
  };
}

function runtimeOf(versions: BomSources["runtime"]): Component[] {
  return RUNTIME.map(({ key, name, where, license, copyright }) => ({
    type: "platform",
    "bom-ref": `runtime:${key}`,
    name,
    ...(versions[key] !== undefined && { version: versions[key] }),
    ...(key === "deno" && { purl: `pkg:github/denoland/deno@v${versions.deno}` }),
    copyright,
    licenses: [{ license: { id: license, acknowledgement: "concluded" } }],
    externalReferences: [{ type: "website", url: where }],
  }));
}

/** Converts the hash of an integrity string, `sha512-` and base64, to hexadecimal. */
function hexOf(integrity: string): string {
  const [algorithm, hash = ""] = integrity.split("-");
  if (algorithm !== "sha512") throw new Error(`Cannot list a package by "${integrity}": expected sha512`);
  return Array.from(atob(hash), (char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

/** Returns a UUID of version 8, whose bits an application may choose: here from the SHA-256 of the content. */
async function serialNumberOf(content: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content)));
  const hex = Array.from(hash.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  return `urn:uuid:${uuid}`;
}

/**
 * Writes the bill of the sources in the working folder, with packages from a cache folder. Creates the file's folder.
 */
export async function writeBom(file: string, cache: string): Promise<void> {
  using database = new DatabaseSync(":memory:");
  const sqlite = String(database.prepare("select sqlite_version() as version").get()?.version);
  const parts = await readParts({ lock: await Deno.readTextFile("deno.lock"), cache });
  const bom = await bomOf({ parts, runtime: { deno: Deno.version.deno, v8: Deno.version.v8, sqlite } });
  await Deno.mkdir(file.replace(/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(file, `${JSON.stringify(bom, null, 2)}\n`);
}

if (import.meta.main) await writeBom(SBOM_FILE, Deno.args[0] ?? "");
