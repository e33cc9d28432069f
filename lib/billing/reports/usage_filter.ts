/** Reads the filter of a bill or search: one key, group, model, end user or tag. */
import { findConfiguredKey } from "../../access/keys.ts";
import type { Config } from "../../config.ts";
import type { KeyRecord, KeyStore } from "../../store/keys.ts";
import type { UsageFilter } from "../../store/ledger.ts";
import { endUserName } from "../end_user_name.ts";
import { ReportQueryError } from "./report_errors.ts";

/** Id that the ledger has instead of a key's for requests with which operators test a target. */
export const TEST_KEY_ID = "system:target-test";
/** Name for {@linkcode TEST_KEY_ID} in reports. No key can have it. */
export const TEST_KEY_NAME = "target test";

/** A filter as text. */
export interface FilterTexts {
  key?: string;
  group?: string;
  model?: string;
  user?: string;
  tag?: string;
}

/** The store in which keys are looked up. */
interface FilterParts {
  keys: Pick<KeyStore, "find">;
  config: Pick<Config, "keys">;
}

/**
 * Reads a filter. The key may be a name or an id of a configured or stored key, or that of tests of targets.
 * @throws {ReportQueryError} if there is no such key, or for several tags
 */
export async function readUsageFilter(
  { key, group, model, user, tag }: FilterTexts,
  { keys, config }: FilterParts,
): Promise<UsageFilter> {
  // Entries keep their tags as a list with commas, which two tags in a row would match.
  if (tag?.includes(",") === true) throw new ReportQueryError(`Cannot read tag "${tag}": expected one tag`, "tag");
  const isTest = key === TEST_KEY_ID || key === TEST_KEY_NAME;
  const record = key === undefined || isTest ? undefined : await findFilterKey(key, { keys, config });
  return {
    keyId: isTest ? TEST_KEY_ID : record?.id,
    group,
    model,
    user: user === undefined ? undefined : endUserName(user),
    tag,
  };
}

/** Finds a configured or stored key by its name or id. @throws {ReportQueryError} if there is none */
export async function findFilterKey(nameOrId: string, { keys, config }: FilterParts): Promise<KeyRecord> {
  const found = findConfiguredKey(config, nameOrId) ?? await keys.find(nameOrId);
  if (found !== undefined) return found;
  throw new ReportQueryError(`Cannot find key "${nameOrId}": there is no key with this name or id`, "key");
}

/**
 * Reads a parameter that is one of some words; `undefined` without it.
 * @throws {ReportQueryError} for any other text
 */
export function readOneOf<Word extends string>(
  text: string | undefined,
  param: string,
  known: readonly Word[],
): Word | undefined {
  const found = known.find((word) => word === text);
  if (text === undefined || found !== undefined) return found;
  throw new ReportQueryError(`Cannot read ${param} "${text}": expected one of ${known.join(", ")}`, param);
}

/** Reads a parameter that is a whole number; `undefined` without it. @throws {ReportQueryError} for any other text */
export function readCount(
  text: string | undefined,
  param: string,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {},
): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
  throw new ReportQueryError(`Cannot read ${param} "${text}": expected a whole number from ${min} to ${max}`, param);
}

/** Checks that the group and the model of a filter without results are configured. @throws {ReportQueryError} if not */
export function requireKnown({ group, model }: UsageFilter, config: Pick<Config, "groups" | "models">): void {
  if (group !== undefined && !Object.hasOwn(config.groups, group)) {
    throw new ReportQueryError(
      `Cannot find group "${group}": it is not configured and has no usage in the period`,
      "group",
    );
  }
  if (model !== undefined && !config.models.some(({ id }) => id === model)) {
    throw new ReportQueryError(
      `Cannot find model "${model}": it is not configured and has no usage in the period`,
      "model",
    );
  }
}
