/** Narrows a bill to the entries of one key, group, model, end user or tag. */
import type { Config } from "../../config.ts";
import type { KeyStore } from "../../store/keys.ts";
import type { UsageFilter } from "../../store/ledger.ts";

/** A filter as text. */
export interface FilterTexts {
  /** Id or name of a key. */
  key?: string;
  group?: string;
  model?: string;
  user?: string;
  tag?: string;
}

/** A filter that names something unknown. */
export class UsageFilterError extends RangeError {
  override name = "UsageFilterError";
  readonly param: keyof FilterTexts;

  constructor(message: string, param: keyof FilterTexts) {
    super(message);
    this.param = param;
  }
}

/** Sources of the names. */
interface FilterParts {
  keys: Pick<KeyStore, "find">;
  config: Pick<Config, "keys">;
}

/** Resolves the key's name to its id, in the configuration and the store. @throws {UsageFilterError} */
export async function readUsageFilter(
  { key, group, model, user, tag }: FilterTexts,
  { keys, config }: FilterParts,
): Promise<UsageFilter> {
  const keyId = key === undefined ? undefined : await findKeyId(key, { keys, config });
  return {
    ...(keyId !== undefined && { keyId }),
    ...(group !== undefined && { group }),
    ...(model !== undefined && { model }),
    ...(user !== undefined && { user }),
    ...(tag !== undefined && { tag }),
  };
}

async function findKeyId(nameOrId: string, { keys, config }: FilterParts): Promise<string> {
  const configured = config.keys.find(({ name }) => name === nameOrId || `config:${name}` === nameOrId);
  if (configured !== undefined) return `config:${configured.name}`;
  const found = await keys.find(nameOrId);
  if (found !== undefined) return found.id;
  throw new UsageFilterError(`Cannot find key "${nameOrId}": there is no key with this name or id`, "key");
}

/** Checks that an unused group or model is at least configured. @throws {UsageFilterError} */
export function requireKnown({ group, model }: UsageFilter, config: Pick<Config, "groups" | "models">): void {
  if (group !== undefined && !Object.hasOwn(config.groups, group)) {
    throw new UsageFilterError(
      `Cannot find group "${group}": it is not configured and has no usage in the period`,
      "group",
    );
  }
  if (model !== undefined && !config.models.some(({ id }) => id === model)) {
    throw new UsageFilterError(
      `Cannot find model "${model}": it is not configured and has no usage in the period`,
      "model",
    );
  }
}
