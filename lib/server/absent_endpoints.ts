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

/** Ends of paths after the base URL, with the endpoint that a client means if its base URL is wrong; longest first. */
const MEANT: readonly (readonly [end: string, endpoint: string])[] = [
  ["/messages/count_tokens", "/anthropic/v1/messages/count_tokens"],
  ["/chat/completions", "/v1/chat/completions"],
  ["/images/generations", "/v1/images/generations"],
  ["/images/edits", "/v1/images/edits"],
  ["/embeddings", "/v1/embeddings"],
  ["/messages", "/anthropic/v1/messages"],
  ["/responses", "/v1/responses"],
  ["/models", "/v1/models"],
  ["/rerank", "/v1/rerank"],
];

/** Matches the end of a path of Google's clients, which call a method of a model. */
const GOOGLE_METHOD = /\/models\/[^/].*:(generateContent|streamGenerateContent|countTokens)$/;

/**
 * Returns the vendor's endpoint that a path belongs to, such as `/v1/files`; `undefined` if no vendor has such a path.
 * @param isGoogles whether a Google client asks, whose newer SDKs have the base paths `/v1` and `/upload/v1`
 */
export function absentEndpoint(path: string, isGoogles: boolean): string | undefined {
  if (isGoogles) {
    const [, base = "", name = ""] = /^((?:\/upload)?\/v1(?:beta)?)\/([^/]*)/.exec(path) ?? [];
    return ABSENT_ENDPOINTS["/v1beta"]?.has(name) === true ? `${base}/${name}` : undefined;
  }
  for (const [base, names] of Object.entries(ABSENT_ENDPOINTS)) {
    if (!path.startsWith(`${base}/`)) continue;
    const [first = "", second = ""] = path.slice(base.length + 1).split("/");
    const name = [first, `${first}/${second}`].find((name) => names.has(name));
    if (name !== undefined) return `${base}/${name}`;
  }
  const parent = ENDPOINTS_WITHOUT_IDS.find((endpoint) => path.startsWith(`${endpoint}/`));
  const rest = path.slice(parent?.length);
  // A base URL that is a whole endpoint gives a path such as `/v1/chat/completions/models`.
  const isId = rest.length > 1 && !MEANT.some(([end]) => end === rest);
  return parent !== undefined && isId ? `${parent}/{id}` : undefined;
}

/** Returns the endpoint that a client with a wrong base URL, or with a slash too many, means; `undefined` if unclear. */
export function meantEndpoint(path: string): string | undefined {
  const lower = path.toLowerCase().replace(/\/+$/, "");
  // Paths for operators must appear not to exist, so they get no hint.
  if (lower.startsWith("/admin/")) return undefined;
  const method = GOOGLE_METHOD.exec(path)?.[1];
  if (method !== undefined) return `/v1beta/models/{model}:${method}`;
  const meant = MEANT.find(([end]) => lower.endsWith(end))?.[1];
  if (meant !== "/v1/models") return meant;
  if (lower.startsWith("/v1beta/")) return "/v1beta/models";
  return lower.startsWith("/anthropic/") ? `/anthropic${meant}` : meant;
}
