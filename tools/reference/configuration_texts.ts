/** Texts on the page about the configuration that are not in the schema: sources, examples and notes. */

/** The introduction. */
export const SOURCES_TEXT = `
Sluice needs no configuration: without one, it serves the embedded models on \`127.0.0.1:8790\` and keeps its data in
\`./data/sluice.db\`. The file is JSON with comments and trailing commas. \`sluice init\` writes one, and \`sluice check\`
shows what it would serve. For completion in an editor, set \`"$schema"\` to
[\`schemas/config.schema.json\`](../../schemas/config.schema.json).

Values come from these sources, in order of precedence:

1. Flags: \`--hostname\`, \`--port\`, \`--admin-port\`, \`--store\`, \`--limits-store\`
2. Environment: \`SLUICE_HOSTNAME\`, \`SLUICE_PORT\`, \`SLUICE_ADMIN_PORT\`, \`SLUICE_STORE\`, \`SLUICE_LIMITS_STORE\`
3. The configuration: the file in \`--config\`, else in \`SLUICE_CONFIG\`, else the text in \`SLUICE_CONFIG_TEXT\`, else
   \`./sluice.jsonc\` if it exists
4. The defaults on this page

An empty \`SLUICE_…\` variable counts as unset. Paths are relative to the working directory. A running gateway reads the
file again when it changes, at SIGHUP, and at \`POST /admin/v1/reload\`. A file with mistakes is refused, and the
configuration in force is kept.
`;

/** Example configurations by the member that they are about. Each is complete and loads. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  listen: `
{ "listen": { "hostname": "0.0.0.0", "port": 8080 } }`,
  nodes: `
{
  "nodes": { "config": "store", "limits_outage": "closed" },
  "store": "postgres://sluice@db.example.com/sluice?sslmode=verify-full",
  "limits_store": "rediss://redis.example.com"
}`,
  upstreams: `
{
  "upstreams": {
    "openai": { "vendor": "openai", "api_key": { "env": "OPENAI_API_KEY" } },
    "box": { "vendor": "vllm", "base_url": "http://10.0.0.7:8000/v1", "timeouts": { "first_byte_ms": 300000 } }
  }
}`,
  models: `
{
  "upstreams": {
    "openai": { "vendor": "openai", "api_key": { "env": "OPENAI_API_KEY" } },
    "box": { "vendor": "vllm", "base_url": "http://10.0.0.7:8000/v1" }
  },
  "models": [
    "openai/gpt-5*", // from the catalog of the release
    { "id": "openai/o3", "limits": { "concurrency": 20 } },
    {
      "id": "acme/assistant",
      "aliases": ["assistant"],
      "created": 1761955200,
      "context_length": 131072,
      "pricing": { "prompt": "0.00000125", "completion": "0.00001" },
      "targets": [{ "upstream": "box", "model": "llama" }]
    }
  ]
}`,
  groups: `
{
  "groups": {
    "team": {
      "models": ["sluice/*"],
      "endpoints": ["models", "chat"],
      "price_factor": "1.2",
      "limits": { "requests_per_minute": 600 },
      "budget": { "usd": "500", "period": "month" },
      "key_limits": { "requests_per_minute": 60, "concurrency": 10 },
      "key_budget": { "usd": "50" }
    }
  }
}`,
  keys: `
{ "keys": [{ "name": "ci", "key": { "env": "SLUICE_CI_KEY" }, "budget": { "usd": "5", "period": "day" } }] }`,
  admin: `
{ "admin": { "key": { "env": "SLUICE_ADMIN_KEY" }, "listen": { "hostname": "127.0.0.1", "port": 8791 } } }`,
  ledger: `
{ "ledger": { "keep_days": 30 } }`,
  log: `
{ "log": { "level": "warn", "requests": "errors" } }`,
  metrics: `
{ "metrics": { "public": true } }`,
  cors: `
{ "cors": { "origins": ["https://app.example.com"] } }`,
  resource_limits: `
{ "resource_limits": { "json_body_bytes": 8388608, "requests_per_client": 32 } }`,
  images: `
{ "images": { "default_quality": "high", "uploads": { "max_file_bytes": 10485760 } } }`,
  responses: `
{ "responses": { "recall": { "minutes": 240 }, "websocket": null } }`,
  routing: `
{ "routing": { "attempts": 2, "breaker": { "consecutive_failures": 3 } } }`,
  alerts: `
{ "alerts": { "webhook": { "env": "SLUICE_ALERTS_URL" }, "format": "slack" } }`,
  shutdown: `
{ "shutdown": { "ready_delay_ms": 5000, "drain_seconds": 60 } }`,
};

/** Facts about a top-level member that concern several rows of its table. */
export const NOTES: Readonly<Record<string, string>> = {
  models: `
- Requests name a model by its \`id\`, its \`canonical_slug\` or an alias. Answers, prices, limits and the ledger use the
  \`id\`.
- \`architecture.output_modalities\` determines the endpoints: \`text\` serves chat, responses and messages; \`image\`,
  \`embeddings\` and \`rerank\` serve the endpoints of these names.
- A short entry takes its data from the catalog of the release. Its target is the only upstream of the model's vendor.
  \`pricing\` and \`targets\` are replaced as a whole. \`sluice models list\` shows the catalog.
- The embedded upstream has the models \`echo\`, \`canvas\`, \`embed\`, \`rerank\` and \`fault\`.
`,
  groups: `
- The catalog shows a key only the models that it may call.
- A name in \`hosted_tools\` is the tool's type without a date: \`web_search\` also allows \`web_search_20250305\`,
  \`web_search_preview\` and chat's \`web_search_options\`. \`image_generation\` also needs the endpoint \`images\`. In chat,
  \`plugins\` (OpenRouter), \`data_sources\` (Azure), \`compound\` (Groq) and \`code_interpreter\` (Qwen) are names of
  members of the body.
- Names in \`service_tiers\` are values of \`service_tier\`. \`fast\` also allows \`speed: "fast"\` and
  \`inference_geo:us\` allows \`inference_geo: "us"\` of the messages protocol. \`auto\`, \`default\`, \`flex\` and
  \`standard_only\` are always allowed.
- Each hosted tool and tier needs a price in \`pricing\` and in each of \`price_changes\` of every model that the group
  may use, except for embedded models and Gemini's.
- With \`vendor_state\`, a client that knows the id of a file or store reads it with the rights of your vendor account,
  even if another key made it.
`,
  keys: `
The rules of a key narrow what its group allows and never widen it.
`,
  admin: `
If the gateway started without \`admin\`, adding it takes effect at the next start.
`,
  nodes: `
With \`"config": "store"\`, these members still come from each node's own file: \`listen\`, \`admin.listen\`, \`store\`,
\`limits_store\` and \`nodes\`.
`,
  shutdown: `
The service manager must wait longer than the longest of these times: \`TimeoutStopSec\` of systemd,
\`terminationGracePeriodSeconds\` of Kubernetes, \`--stop-timeout\` of Docker. A second signal ends the process at once.
`,
  resource_limits: `
- After 20 invalid keys from one address (for IPv6, one /64) within a minute, further invalid ones get 429 for the rest of
  that minute. Valid keys are always accepted.
`,
};
