/**
 * Checks imports between parts of the code, and code that only some parts may contain; also runs the checks of
 * `names.ts`. Prints one line per violation. `deno task layers`
 */
import { GROUND, HTTP_AREAS, LAYERS, type Layers, LAZY, SELF_CONTAINED } from "./layer_table.ts";
import { checkFrontDoors, checkImportCounts, checkTypeNames } from "./names.ts";
import { blankComments, readSources, type SourceFile } from "./sources.ts";

/** Code that only the areas in `allowed` may contain. */
const RESTRICTED_CODE: readonly { pattern: RegExp; allowed: readonly string[]; why: string }[] = [
  {
    pattern: /\bnew (?:Request|Response)\b|\bResponse\.json\b|[:<|(,] ?(?:Request|Response)\b(?=[\s,)>|[\]{;=])/g,
    allowed: HTTP_AREAS,
    why: "Request and Response belong to the HTTP side",
  },
  { pattern: /new URL\(\s*\w*(?:request|req)\.url/gi, allowed: [], why: "the Host header would decide the path" },
  { pattern: /\.tee\(/g, allowed: [], why: "tee() buffers without limit" },
];

/** An import of a file. Imports of packages through the import map are left out. */
interface Import {
  /** Path from the root of the repository, or a URL. */
  path: string;
  typeOnly: boolean;
  dynamic: boolean;
}

/** Lists the violations in the files, as `path: problem`. */
export function checkLayers(files: readonly SourceFile[], layers: Layers = LAYERS): string[] {
  const stripped = files.map(({ path, text }) => ({ path, text: blankComments(text) }));
  const imports = new Map(stripped.map((file) => [file.path, readImports(file)]));
  return [
    ...stripped.flatMap(({ path }) => checkImports(path, { imports: imports.get(path) ?? [], layers })),
    ...stripped.flatMap(checkRestrictedCode),
    ...findCycles(imports),
  ];
}

function checkImports(path: string, { imports, layers }: { imports: readonly Import[]; layers: Layers }): string[] {
  const area = areaOf(path, Object.keys(layers));
  if (area === undefined) return [`${path}: has no place in the table of layers`];
  const allowed = [...GROUND, ...(layers[area] ?? [])];
  return imports.flatMap((target) => {
    if (/^(?:https?:|jsr:|npm:)/.test(target.path)) return [`${path}: imports ${target.path} past the import map`];
    const isOwn = areaOf(target.path, Object.keys(layers)) === area;
    const part = SELF_CONTAINED.find((folder) => isWithin(target.path, folder));
    if (part !== undefined && !isWithin(path, part) && target.path !== `${part}/mod.ts`) {
      return [`${path}: may import ${target.path} only through ${part}/mod.ts`];
    }
    if (!target.dynamic && !target.typeOnly && isLazy(target.path) && !isLazy(path)) {
      return [`${path}: may import ${target.path} only with import()`];
    }
    return isOwn || allowed.some((parent) => isWithin(target.path, parent))
      ? []
      : [`${path}: may not import ${target.path}`];
  });
}

/** Returns whether a file is loaded with its first use. */
function isLazy(path: string): boolean {
  return LAZY.some((part) => isWithin(path, part));
}

/** Returns the longest area that contains a file; `undefined` if none does. */
function areaOf(path: string, areas: readonly string[]): string | undefined {
  return areas.filter((area) => isWithin(path, area)).sort((a, b) => b.length - a.length)[0];
}

function isWithin(path: string, parent: string): boolean {
  return path === parent || path.startsWith(`${parent}/`);
}

function checkRestrictedCode({ path, text }: SourceFile): string[] {
  return RESTRICTED_CODE.flatMap(({ pattern, allowed, why }) => {
    if (allowed.some((parent) => isWithin(path, parent))) return [];
    return [...text.matchAll(pattern)].map((match) =>
      `${path}:${text.slice(0, match.index).split("\n").length}: "${match[0].trim()}" is not allowed here: ${why}`
    );
  });
}

/** Finds cycles of runtime imports, each once; type-only imports do not count. */
function findCycles(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  function visit(path: string): void {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push(`${path}: imports itself: ${[...trail.slice(at), path].join(" -> ")}`);
    if (at >= 0 || done.has(path)) return;
    trail.push(path);
    for (const target of imports.get(path) ?? []) {
      if (!target.typeOnly) visit(target.path);
    }
    trail.pop();
    done.add(path);
  }
  for (const path of imports.keys()) visit(path);
  return cycles;
}

function readImports({ path, text }: SourceFile): Import[] {
  const pattern =
    /\b(import|export)\s+(type\s+)?(?:([\w*$\s{},]+?)\s*from\s*)?["']([^"'\n]+)["']|\bimport\(\s*["']([^"'\n]+)["']/g;
  return [...text.matchAll(pattern)].flatMap(([, , type, names, from, dynamic]) => {
    const specifier = from ?? dynamic ?? "";
    const isOurs = specifier.startsWith(".");
    if (!isOurs && !/^(?:https?:|jsr:|npm:)/.test(specifier)) return [];
    return [{
      path: isOurs ? resolve(path, specifier) : specifier,
      typeOnly: type !== undefined || onlyTypes(names),
      dynamic: dynamic !== undefined,
    }];
  });
}

/** Returns whether the names of an import are all types, as in `{ type A, type B }`: such an import runs nothing. */
function onlyTypes(names: string | undefined): boolean {
  const list = /^\{(.*)\}$/s.exec(names?.trim() ?? "")?.[1];
  return list !== undefined && list.split(",").every((name) => /^\s*(?:type\s.*)?$/s.test(name));
}

function resolve(from: string, specifier: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

if (import.meta.main) {
  const files = (await Promise.all(["lib", "routes", "main.ts"].map(readSources))).flat();
  files.sort((a, b) => a.path < b.path ? -1 : 1);
  const violations = [
    ...checkLayers(files),
    ...checkTypeNames(files),
    ...checkImportCounts(files),
    ...checkFrontDoors(files),
  ];
  const out = new TextEncoder().encode(violations.map((line) => `${line}\n`).join(""));
  if (violations.length > 0) {
    await Deno.stderr.write(out);
    Deno.exit(1);
  }
}
