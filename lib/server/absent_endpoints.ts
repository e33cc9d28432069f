/**
 * Endpoints of the vendors' APIs that Sluice does not have. A client that asks for one has the right base URL, so the error
 * must not send its author looking there.
 */

/** By base path: endpoints and all that is below them. */
const ENDPOINTS: Readonly<Record<string, ReadonlySet<string>>> = {
  // https://platform.openai.com/docs/api-reference
  "/v1": new Set([
    "assistants",
    "audio",
    "batches",
    "chatkit",
    "completions",
    "containers",
    "conversations",
    "edits",
    "engines",
    "evals",
    "files",
    "fine-tunes",
    "fine_tuning",
    "images/variations",
    "moderations",
    "organization",
    "projects",
    "realtime",
    "skills",
    "threads",
    "uploads",
    "vector_stores",
    "videos",
  ]),
  // https://docs.claude.com/en/api
  "/anthropic/v1": new Set([
    "agents",
    "complete",
    "environments",
    "experimental",
    "files",
    "messages/batches",
    "organizations",
    "sessions",
    "skills",
    "vaults",
  ]),
  // https://ai.google.dev/api
  "/v1beta": new Set([
    "agents",
    "auth_tokens",
    "batches",
    "cachedContents",
    "corpora",
    "dynamic",
    "fileSearchStores",
    "files",
    "generatedFiles",
    "interactions",
    "operations",
    "tunedModels",
  ]),
};

/** Endpoints that Sluice has, without the vendor's stored objects below them. */
const WITHOUT_IDS = ["/v1/chat/completions", "/v1/responses"];

/** The endpoint that a path would be at a vendor, such as `/v1/files`; `undefined` where no vendor has it. */
export function absentEndpoint(path: string): string | undefined {
  for (const [base, names] of Object.entries(ENDPOINTS)) {
    if (!path.startsWith(`${base}/`)) continue;
    const [first = "", second = ""] = path.slice(base.length + 1).split("/");
    const name = [first, `${first}/${second}`].find((name) => names.has(name));
    if (name !== undefined) return `${base}/${name}`;
  }
  const parent = WITHOUT_IDS.find((endpoint) => path.startsWith(`${endpoint}/`) && path.length > endpoint.length + 1);
  return parent === undefined ? undefined : `${parent}/{id}`;
}
