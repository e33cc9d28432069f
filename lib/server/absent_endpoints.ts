/**
 * Lists endpoints of the vendors' APIs that Sluice does not have. A client that calls one of them has the right base
 * URL, so the error must not suggest that the base URL is wrong.
 */

/** Missing endpoints by base path. Each stands for itself and every path below it. */
const ABSENT_ENDPOINTS: Readonly<Record<string, ReadonlySet<string>>> = {
  // https://platform.openai.com/docs/api-reference
  "/v1": new Set(
    `assistants audio batches chatkit completions containers conversations edits engines evals files fine-tunes
    fine_tuning images/variations moderations organization projects realtime skills threads uploads vector_stores
    videos`.split(/\s+/),
  ),
  // https://docs.claude.com/en/api
  "/anthropic/v1": new Set(
    `agents complete environments experimental files messages/batches organizations sessions skills vaults`.split(
      /\s+/,
    ),
  ),
  // https://ai.google.dev/api
  "/v1beta": new Set(
    `agents auth_tokens batches cachedContents corpora dynamic fileSearchStores files generatedFiles interactions
    operations tunedModels`.split(/\s+/),
  ),
};

/** Endpoints that Sluice has, but without the paths below them, which address objects that the vendor stores. */
const ENDPOINTS_WITHOUT_IDS = ["/v1/chat/completions", "/v1/responses"];

/**
 * Returns the vendor's endpoint that a path belongs to, such as `/v1/files`; `undefined` if no vendor has such a path.
 */
export function absentEndpoint(path: string): string | undefined {
  for (const [base, names] of Object.entries(ABSENT_ENDPOINTS)) {
    if (!path.startsWith(`${base}/`)) continue;
    const [first = "", second = ""] = path.slice(base.length + 1).split("/");
    const name = [first, `${first}/${second}`].find((name) => names.has(name));
    if (name !== undefined) return `${base}/${name}`;
  }
  const parent = ENDPOINTS_WITHOUT_IDS.find((endpoint) =>
    path.startsWith(`${endpoint}/`) && path.length > endpoint.length + 1
  );
  return parent === undefined ? undefined : `${parent}/{id}`;
}
