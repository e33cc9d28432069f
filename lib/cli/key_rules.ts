/** Reads the rules and the expiry of a key from flags. The rules are validated when the key is stored. */
import type { KeyRules } from "../config.ts";
import { readFlags, UsageError } from "./arguments.ts";
import type { Switch, ValueFlag } from "./commands.ts";
import { parseMoment } from "../store/times.ts";

/** Flags as they were typed. */
export interface KeyRuleFlags {
  values: Partial<Record<ValueFlag, string>>;
  switches: ReadonlySet<Switch>;
}

/** The value that removes a rule. */
const UNSET = "unset";

/** Flags with lists. The rules have the same names. */
const LIST_FLAGS = ["models", "endpoints", "ips"] as const;

const LIMIT_FLAGS = [["rpm", "requests_per_minute"], ["tpm", "tokens_per_minute"], [
  "concurrency",
  "concurrency",
]] as const;

/**
 * Returns all rules of a key after the change that flags request, not yet validated; `undefined` if no flag is about
 * rules.
 * @param present the rules that the key has
 * @throws {UsageError} if the value of a flag has the wrong form, or if the key lacks the rule that it is about
 */
export function parseKeyRules(
  { values, switches }: KeyRuleFlags,
  present: KeyRules,
): Record<string, unknown> | undefined {
  const lists = LIST_FLAGS.flatMap((name) => values[name] === undefined ? [] : [[name, readList(values[name])]]);
  const limits = changedLimits({ values, switches }, present.limits);
  const budget = changedBudget(values, present.budget);
  const userBudget = changedUserBudget(values, present.user_budget);
  if (lists.length === 0 && (limits ?? budget ?? userBudget) === undefined) return undefined;
  const rules = { ...present, ...Object.fromEntries(lists), ...limits, ...budget, ...userBudget };
  return Object.fromEntries(Object.entries(rules).filter(([, rule]) => rule !== undefined));
}

/**
 * Returns the expiry that a flag sets, as Unix time in milliseconds; `null`: the expiry is removed; `undefined` without
 * the flag.
 * @throws {UsageError} if it cannot be read
 */
export async function parseExpiry(text: string | undefined, now: number): Promise<number | null | undefined> {
  if (text === undefined) return undefined;
  return text === UNSET ? null : await readFlags(() => parseMoment(text, now));
}

/** A changed rule by its name, with the value `undefined` if it is removed; `undefined`: no flag changes it. */
type ChangedRule<Name extends string> = Partial<Record<Name, unknown>> | undefined;

function changedLimits({ values, switches }: KeyRuleFlags, present: KeyRules["limits"]): ChangedRule<"limits"> {
  const fromFlags = LIMIT_FLAGS.flatMap(([flag, name]) =>
    values[flag] === undefined ? [] : [[name, readNumber(flag, values[flag])]]
  );
  const reportOnly = switches.has("report-only");
  if (reportOnly && switches.has("enforce")) throw new UsageError("--report-only and --enforce cannot be combined");
  if (fromFlags.length === 0 && !reportOnly && !switches.has("enforce")) return undefined;
  const { report_only = false, ...all } = { ...present, ...Object.fromEntries(fromFlags) };
  const limits = Object.entries(all).filter(([, limit]) => limit !== undefined);
  if (limits.length === 0 && (reportOnly || switches.has("enforce"))) {
    throw new UsageError("--report-only and --enforce require limits, and the key has none of its own");
  }
  if (limits.length === 0) return { limits: undefined };
  return {
    limits: { ...Object.fromEntries(limits), report_only: reportOnly || report_only && !switches.has("enforce") },
  };
}

function changedBudget({ budget, period }: KeyRuleFlags["values"], present: KeyRules["budget"]): ChangedRule<"budget"> {
  if (budget === undefined && period === undefined) return undefined;
  if (budget === UNSET && period === undefined) return { budget: undefined };
  const usd = budget ?? present?.usd;
  if (usd === undefined || usd === UNSET) {
    throw new UsageError("--period requires a budget, and the key has none of its own: add --budget");
  }
  const newPeriod = period ?? present?.period;
  return { budget: { usd, ...(newPeriod !== undefined && { period: newPeriod }) } };
}

function changedUserBudget(
  { "user-budget": amount, "user-period": period, "require-user": required }: KeyRuleFlags["values"],
  present: KeyRules["user_budget"],
): ChangedRule<"user_budget"> {
  if (amount === undefined && period === undefined && required === undefined) return undefined;
  if (amount === UNSET && (period ?? required) === undefined) return { user_budget: undefined };
  if (required !== undefined && required !== "yes" && required !== "no") {
    throw new UsageError(`Expected yes or no after --require-user, not "${required}"`);
  }
  const usd = amount ?? present?.usd;
  if (usd === undefined || usd === UNSET) {
    throw new UsageError("--user-period and --require-user need a budget of end users: add --user-budget");
  }
  return {
    user_budget: {
      ...present,
      usd,
      ...(period !== undefined && { period }),
      ...(required !== undefined && { require_user: required === "yes" }),
    },
  };
}

function readList(text: string): string[] | undefined {
  return text === UNSET ? undefined : text.split(",").map((item) => item.trim());
}

function readNumber(flag: string, text: string): number | undefined {
  if (text === UNSET) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`Expected a whole number or "${UNSET}" after --${flag}, not "${text}"`);
}
