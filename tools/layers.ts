/** Checks who may import whom, and a few words that have their place. One line per violation. */
import { checkAmounts } from "./amounts.ts";
import { checkImportCounts, checkTypeNames } from "./names.ts";
import { blankComments, readSources, type SourceFile } from "./sources.ts";

/** Allowed imports of our own code, by area. An area is a folder, or a single file. */
type Layers = Readonly<Record<string, readonly string[]>>;

/** May be imported by everybody; they import nothing but each other. */
const GROUND = [
  "lib/json",
  "lib/errors.ts",
  "lib/log_events.ts",
  "lib/causes.ts",
  "lib/secret.ts",
  "lib/redact.ts",
  "lib/scheduler.ts",
  "lib/admission_queue.ts",
  "lib/reference_count.ts",
  "lib/unordered_list.ts",
  "lib/abort.ts",
  "lib/phase_timers.ts",
  "lib/text.ts",
  "lib/csv.ts",
];

/** Parts that the rest of the code imports through their `mod.ts` only. */
const SELF_CONTAINED = [
  "lib/json",
  "lib/conform",
  "lib/fault",
  "lib/canvas",
  "lib/http1",
  "lib/o200k",
];

/** Parts that are loaded with their first use: imports from elsewhere are dynamic. */
const LAZY = ["lib/console", "routes/admin"];

/** Files that protocol folders share, besides the canonical form. */
const SHARED_BY_PROTOCOLS = [
  "frame_template.ts",
  "codec.ts",
  "long_frame.ts",
  "upstream_codec.ts",
  "relay.ts",
  "fields.ts",
  "members.ts",
  "plain_contents.ts",
  "error_bodies.ts",
  "extras.ts",
]
  .map((file) => `lib/protocols/${file}`);

const PROTOCOL = ["lib/protocols/canonical", "lib/catalog/model.ts", ...SHARED_BY_PROTOCOLS];
const DATA = ["lib/config.ts", "lib/config", "lib/catalog/model.ts"];

/** The longest matching area of a file decides. Every area may import itself and the ground. */
const LAYERS: Layers = {
  ...Object.fromEntries(GROUND.map((file) => [file, []])),
  "lib/protocols/canonical": [],
  "lib/protocols": ["lib/protocols/canonical", "lib/catalog/model.ts"],
  "lib/protocols/chat": PROTOCOL,
  "lib/protocols/responses": PROTOCOL,
  "lib/protocols/messages": PROTOCOL,
  "lib/protocols/gemini": PROTOCOL,
  "lib/protocols/translate": ["lib/protocols/canonical", "lib/catalog/model.ts", ...SHARED_BY_PROTOCOLS],
  "lib/protocols/quirks": [...PROTOCOL, "lib/upstreams/vendors.ts"],
  "lib/o200k": [],
  "lib/http1": [],
  "lib/canvas": [],
  "lib/routing": ["lib/protocols/canonical", "lib/catalog/model.ts"],
  "lib/config.ts": ["lib/alerts/event.ts", "lib/config", "lib/catalog", "lib/access", "lib/upstreams/vendors.ts"],
  "lib/config": [
    "lib/config.ts",
    "lib/catalog",
    "lib/access",
    "lib/store",
    "lib/upstreams/vendors.ts",
  ],
  "lib/catalog": [
    "lib/protocols/canonical",
    "lib/config.ts",
    "lib/access",
    "lib/gateway.ts",
    "lib/server",
    "lib/upstreams/vendors.ts",
  ],
  "lib/store": DATA,
  "lib/limits": ["lib/access", "lib/catalog/model.ts", "lib/config/address.ts", "lib/store/ledger.ts"],
  "lib/billing": [
    "lib/o200k",
    "lib/access",
    "lib/protocols/canonical",
    "lib/catalog",
    "lib/config.ts",
    "lib/limits",
    "lib/store",
  ],
  "lib/access": [...DATA, "lib/catalog", "lib/protocols/canonical", "lib/store"],
  "lib/billing/reports": [
    "lib/access",
    "lib/cli/duration.ts",
    "lib/config.ts",
    "lib/billing",
    "lib/limits/errors.ts",
    "lib/store",
  ],
  "lib/upstreams": [
    "lib/o200k",
    "lib/access/networks.ts",
    "lib/http1",
    "lib/protocols/canonical",
    "lib/catalog",
    "lib/fault",
    "lib/server/sse.ts",
    "lib/images",
    "lib/retrieval",
    "lib/billing",
    "lib/protocols",
    "lib/protocols/translate",
  ],
  "lib/observe": ["lib/billing/money.ts", "lib/store/ledger.ts"],
  "lib/recall": ["lib/config/address.ts"],
  "lib/responses": [
    "lib/access",
    "lib/billing",
    "lib/o200k",
    "lib/upstreams/vendors.ts",
    "lib/gateway.ts",
    "lib/protocols",
    "lib/recall",
    "lib/request",
    "lib/server",
  ],
  "lib/alerts": [
    "lib/alerts/event.ts",
    "lib/billing",
    "lib/config.ts",
    "lib/gateway.ts",
    "lib/server/cause.ts",
    "lib/store",
    "lib/upstreams",
  ],
  "lib/alerts/event.ts": [],
  "lib/gateway.ts": [
    "lib/recall",
    "lib/protocols/quirks",
    "lib/observe",
    "lib/access",
    "lib/catalog",
    "lib/config.ts",
    "lib/config",
    "lib/images",
    "lib/retrieval",
    "lib/limits",
    "lib/billing",
    "lib/routing",
    "lib/store",
    "lib/upstreams",
  ],
  "lib/server": [
    "lib/access",
    "lib/billing/meter.ts",
    "lib/store/ledger.ts",
    "lib/protocols/canonical",
    "lib/config.ts",
    "lib/gateway.ts",
    "lib/observe",
    ...SHARED_BY_PROTOCOLS,
  ],
  "lib/admin": [
    "deno.json",
    "lib/access",
    "lib/cli/duration.ts",
    "lib/config.ts",
    "lib/config",
    "lib/gateway.ts",
    "lib/server",
    "lib/openapi",
    "lib/request/health.ts",
    "lib/protocols/fields.ts",
    "lib/billing/reports",
    "lib/routing/health.ts",
    "lib/store",
  ],
  "lib/console": [
    "lib/access",
    "lib/admin",
    "lib/billing/money.ts",
    "lib/billing/reports",
    "lib/cli/duration.ts",
    "lib/cli/warnings",
    "lib/config.ts",
    "lib/catalog",
    "lib/doctor",
    "lib/gateway.ts",
    "lib/images/serve.ts",
    "lib/limits",
    "lib/protocols",
    "lib/request",
    "lib/responses/serve_responses.ts",
    "lib/retrieval/serve.ts",
    "lib/routing/health.ts",
    "lib/server",
    "lib/store",
    "lib/upstreams/protocols.ts",
  ],
  "lib/openapi": [
    "lib/access",
    "lib/protocols/canonical",
    "lib/catalog",
    "lib/config.ts",
    "lib/server",
    "lib/images",
    "lib/retrieval",
    "lib/protocols",
  ],
  "lib/request": [
    "lib/o200k",
    "lib/access",
    "lib/protocols/canonical",
    "lib/catalog",
    "lib/config.ts",
    "lib/gateway.ts",
    "lib/server",
    "lib/limits",
    "lib/billing",
    "lib/observe",
    "lib/protocols",
    "lib/routing",
    "lib/store/ledger.ts",
    "lib/upstreams",
    "deno.json",
  ],
  "lib/images": [
    "lib/o200k",
    "lib/access",
    "lib/canvas",
    "lib/protocols/canonical",
    "lib/catalog",
    "lib/config.ts",
    "lib/gateway.ts",
    "lib/server",
    "lib/billing",
    "lib/observe",
    "lib/request",
    ...SHARED_BY_PROTOCOLS,
    "lib/routing",
    "lib/store",
  ],
  "lib/retrieval": [
    "lib/o200k",
    "lib/access",
    "lib/catalog",
    "lib/gateway.ts",
    "lib/server",
    "lib/images/json_chunks.ts",
    "lib/limits",
    "lib/billing",
    "lib/observe",
    "lib/protocols/canonical",
    "lib/request",
    ...SHARED_BY_PROTOCOLS,
    "lib/routing",
    "lib/store",
  ],
  "lib/conform": [],
  "lib/doctor": [
    "lib/access/networks.ts",
    "lib/catalog",
    "lib/config.ts",
    "lib/config/address.ts",
    "lib/store/days.ts",
    "lib/store/postgres",
    "lib/store/sqlite/owner_lock.ts",
    "lib/upstreams/probe.ts",
    "lib/upstreams/address_guard.ts",
    "lib/upstreams/proxies.ts",
    "lib/upstreams/vendors.ts",
    "lib/upstreams/select_transport.ts",
  ],
  "lib/fault": ["lib/protocols/canonical", "lib/protocols/codec.ts"],
  "lib/cli": ["lib", "deno.json", "routes/manifest.ts"],
  "routes": [
    "lib/admin",
    "lib/console",
    "lib/server",
    "lib/images",
    "lib/retrieval",
    "lib/request",
    "lib/responses",
    "lib/catalog",
    "lib/openapi",
    "lib/protocols",
  ],
  "main.ts": ["lib/cli", "routes/manifest.ts"],
};

/** Areas that may use `Request` and `Response`. */
const HTTP_AREAS = [
  "lib/admin",
  "lib/console",
  "lib/server",
  "lib/request",
  "lib/responses",
  "lib/images",
  "lib/retrieval",
  "lib/upstreams",
  "lib/catalog",
  "lib/openapi",
  "lib/cli",
  "routes",
];

/** Words that are wrong wherever they stand outside the areas named. */
const WORDS: readonly { pattern: RegExp; allowed: readonly string[]; why: string }[] = [
  {
    pattern: /\bnew (?:Request|Response)\b|\bResponse\.json\b|[:<|(,] ?(?:Request|Response)\b(?=[\s,)>|[\]{;=])/g,
    allowed: HTTP_AREAS,
    why: "Request and Response belong to the HTTP side",
  },
  { pattern: /new URL\(\s*\w*(?:request|req)\.url/gi, allowed: [], why: "the Host header would decide the path" },
  { pattern: /\.tee\(/g, allowed: [], why: "tee() buffers without limit" },
];

/** Imports of a file, as resolved paths. Packages are left out. */
interface Import {
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
    ...stripped.flatMap(checkWords),
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
    return isOwn || allowed.some((place) => isWithin(target.path, place))
      ? []
      : [`${path}: may not import ${target.path}`];
  });
}

function isLazy(path: string): boolean {
  return LAZY.some((part) => isWithin(path, part));
}

function areaOf(path: string, areas: readonly string[]): string | undefined {
  return areas.filter((area) => isWithin(path, area)).sort((a, b) => b.length - a.length)[0];
}

function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

function checkWords({ path, text }: SourceFile): string[] {
  return WORDS.flatMap(({ pattern, allowed, why }) => {
    if (allowed.some((place) => isWithin(path, place))) return [];
    return [...text.matchAll(pattern)].map((match) =>
      `${path}:${text.slice(0, match.index).split("\n").length}: "${match[0].trim()}" is not allowed here: ${why}`
    );
  });
}

/** Finds cycles of runtime imports, each once; type-only imports do not count. */
function findCycles(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  function visit(path: string): void {
    const at = trail.indexOf(path);
    if (at >= 0) found.push(`${path}: imports itself: ${[...trail.slice(at), path].join(" -> ")}`);
    if (at >= 0 || done.has(path)) return;
    trail.push(path);
    for (const target of imports.get(path) ?? []) {
      if (!target.typeOnly) visit(target.path);
    }
    trail.pop();
    done.add(path);
  }
  for (const path of imports.keys()) visit(path);
  return found;
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

/** `{ type A, type B }` imports nothing that runs. */
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
    ...checkAmounts(files),
    ...checkTypeNames(files),
    ...checkImportCounts(files),
  ];
  const out = new TextEncoder().encode(violations.map((line) => `${line}\n`).join(""));
  if (violations.length > 0) {
    await Deno.stderr.write(out);
    Deno.exit(1);
  }
}
