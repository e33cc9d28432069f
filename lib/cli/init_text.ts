/** Writes the text of a first configuration, with comments. */
import type { VendorName } from "../upstreams/vendors.ts";

/** The operator's answers. */
export interface InitAnswers {
  vendor: VendorName;
  /** Address of the upstream; absent: the vendor's own. */
  baseUrl?: string;
  /** Name of the environment variable that holds the key; absent: the upstream needs none. */
  keyEnv?: string;
  /** Ids and globs of the catalog, or models that the catalog does not have. */
  models: readonly (string | UnlistedModel)[];
}

/** A model that the catalog does not have. */
export interface UnlistedModel {
  id: string;
  /** The model's id at the upstream. */
  name: string;
}

/**
 * Returns the text of a configuration.
 * @param created `created` of models that the catalog does not have, Unix time in seconds
 */
export function initText({ vendor, baseUrl, keyEnv, models }: InitAnswers, created: number): string {
  const upstream = {
    vendor,
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...(keyEnv !== undefined && { api_key: { env: keyEnv } }),
  };
  const rows = models.map((model) => typeof model === "string" ? json(model) : unlistedText(model, vendor, created));
  const about = models.every((model) => typeof model === "string")
    ? "Data and prices of these models come from the catalog of the release: sluice models list"
    : "The catalog of the release does not have these models. Correct their context length and prices";
  return `// Configuration of Sluice. Show what it serves: sluice check. All members: docs/reference/configuration.md
{
  // Hosts that run models. Their keys come from environment variables, never from this file.
  "upstreams": {
    ${json(vendor)}: ${json(upstream)}
  },

  // Models that clients can use, in addition to the embedded ones (sluice/echo, sluice/canvas).
  // ${about}.
  "models": [
    ${rows.join(",\n    ")}
  ],

  // Permissions and limits of keys. Make a key: sluice keys add NAME
  "groups": {
    "default": {
      // "key_limits": { "requests_per_minute": 60 },
      // "key_budget": { "usd": "50", "period": "month" },
      "models": ["*"]
    }
  },

  // The admin API and the console, under /admin. Make the key with: openssl rand -hex 32
  // "admin": { "key": { "env": "SLUICE_ADMIN_KEY" } },

  // The address for clients. 0.0.0.0 listens on every interface: then put a reverse proxy with TLS in front of it.
  "listen": { "hostname": "127.0.0.1", "port": 8790 }
}
`;
}

function unlistedText({ id, name }: UnlistedModel, vendor: string, created: number): string {
  return `{
      "id": ${json(id)},
      "created": ${created},
      "context_length": 32768, // tokens
      // USD per token that clients pay, such as "0.00000125". "0" is free.
      "pricing": { "prompt": "0", "completion": "0" },
      "targets": [{ "upstream": ${json(vendor)}, "model": ${json(name)} }]
    }`;
}

/** Formats a value as JSON on one line, with a space after each colon and comma. Arrays are not supported. */
function json(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${json(member)}`).join(", ")} }`;
}
