/**
 * Makes fast validators from zod schemas. They accept most valid bodies without zod, which copies every object and
 * collects issues. A body that they do not accept goes to zod, which decides and reports. Without them a relayed
 * request of 1 KB takes 5.8 % more CPU.
 */
import type { z } from "zod";

/** Returns true only if the schema accepts a JSON value. False means that zod must decide. */
export type FastPathValidator = (value: unknown) => boolean;

/** The part of zod's internal definition (`_zod.def`) of a schema or a check that is read here. */
interface Definition {
  type?: string;
  check?: string;
  [detail: string]: unknown;
}

type Schema = z.core.$ZodType;

const acceptNothing: FastPathValidator = () => false;

/** Creates the validator of a schema. It accepts nothing if the schema is of an unknown kind or transforms values. */
export function fastPathValidator(schema: Schema): FastPathValidator {
  const definition = definitionOf(schema);
  const typeValidator = validatorOfType(definition);
  const checks = (definition.checks as readonly Schema[] | undefined ?? []).map(validatorOfCheck);
  // As in zod, the length of an array is checked before its items.
  return definition.type === "array" && checks.length > 0
    ? both(checks.reduce(both), typeValidator)
    : checks.reduce(both, typeValidator);
}

/** The invalid member or item of each invalid object or array; if a union refused several options, that of the last. */
type Faults = Map<object, string | number>;

/** Collects faults while `cutAfterFault` runs; undefined otherwise. */
let faults: Faults | undefined;

/**
 * Returns a copy of an invalid value in which each array ends with its first invalid item; the same value if no item is
 * known to be invalid. Zod reports every fault, and 60,000 of them take 150 ms.
 */
export function cutAfterFault<T>(value: T, accepts: FastPathValidator): T {
  faults = new Map();
  try {
    return accepts(value) ? value : cutAt(value, faults);
  } finally {
    faults = undefined;
  }
}

function cutAt<T>(value: T, faultsFound: Faults): T {
  const key = typeof value === "object" && value !== null ? faultsFound.get(value) : undefined;
  if (key === undefined) return value;
  const cutMember = cutAt((value as Record<string | number, unknown>)[key], faultsFound);
  return (Array.isArray(value) ? [...value.slice(0, Number(key)), cutMember] : { ...value, [key]: cutMember }) as T;
}

function definitionOf(schema: Schema): Definition {
  return schema._zod.def as unknown as Definition;
}

function validatorOfType(definition: Definition): FastPathValidator {
  switch (definition.type) {
    case "string":
      // The definition of a string with a format is also that of a check.
      return definition.check === undefined
        ? (value) => typeof value === "string"
        : both(isString, formatCheck(definition));
    case "number":
      return definition.check === undefined ? Number.isFinite : both(Number.isFinite, formatCheck(definition));
    case "boolean":
      return (value) => typeof value === "boolean";
    case "null":
      return (value) => value === null;
    case "unknown":
    case "any":
      return () => true;
    case "literal":
      return oneOf(definition.values as readonly unknown[]);
    case "enum":
      return oneOf(Object.values(definition.entries as Record<string, unknown>));
    case "optional":
      return orAbsent(undefined, innerValidator(definition));
    case "nullable":
      return orAbsent(null, innerValidator(definition));
    case "array":
      return arrayCheck(fastPathValidator(definition.element as Schema));
    case "union":
      return typeof definition.discriminator === "string"
        ? choiceCheck(definition.discriminator, definition.options as readonly Schema[])
        : unionCheck((definition.options as readonly Schema[]).map(fastPathValidator));
    case "object":
      return objectCheck(definition);
    case "record":
      return recordCheck(definition);
    case "lazy":
      return lazyCheck(definition.getter as () => Schema);
    default:
      return acceptNothing;
  }
}

/** Creates the validator of a check besides the type: of a length, a range, a pattern, or a function. */
function validatorOfCheck(check: Schema): FastPathValidator {
  const definition = definitionOf(check);
  switch (definition.check) {
    case "min_length":
      return (value) => lengthOf(value) >= Number(definition.minimum);
    case "max_length":
      return (value) => lengthOf(value) <= Number(definition.maximum);
    case "greater_than":
      return definition.inclusive === true
        ? (value) => typeof value === "number" && value >= Number(definition.value)
        : (value) => typeof value === "number" && value > Number(definition.value);
    case "less_than":
      return definition.inclusive === true
        ? (value) => typeof value === "number" && value <= Number(definition.value)
        : (value) => typeof value === "number" && value < Number(definition.value);
    case "string_format":
    case "number_format":
      return formatCheck(definition);
    case "custom":
      return typeof definition.fn === "function"
        ? (value) => (definition.fn as (value: unknown) => unknown)(value) === true
        : acceptNothing;
    default:
      return acceptNothing;
  }
}

function formatCheck({ format, pattern }: Definition): FastPathValidator {
  if (format === "safeint") return Number.isSafeInteger;
  if (format !== "regex" || !(pattern instanceof RegExp) || pattern.global || pattern.sticky) return acceptNothing;
  return (value) => typeof value === "string" && pattern.test(value);
}

function lengthOf(value: unknown): number {
  return typeof value === "string" || Array.isArray(value) ? value.length : NaN;
}

function isString(value: unknown): boolean {
  return typeof value === "string";
}

function both(first: FastPathValidator, second: FastPathValidator): FastPathValidator {
  return (value) => first(value) && second(value);
}

function orAbsent(absent: null | undefined, check: FastPathValidator): FastPathValidator {
  return (value) => value === absent || check(value);
}

function innerValidator({ innerType }: Definition): FastPathValidator {
  return fastPathValidator(innerType as Schema);
}

function oneOf(values: readonly unknown[]): FastPathValidator {
  const [only] = values;
  return values.length === 1 ? (value) => value === only : (value) => values.includes(value);
}

function arrayCheck(element: FastPathValidator): FastPathValidator {
  return (value) => {
    if (!Array.isArray(value)) return false;
    for (let index = 0; index < value.length; index++) {
      if (element(value[index])) continue;
      faults?.set(value, index);
      return false;
    }
    return true;
  };
}

function unionCheck(options: readonly FastPathValidator[]): FastPathValidator {
  return (value) => {
    for (let index = 0; index < options.length; index++) if (options[index]?.(value)) return true;
    return false;
  };
}

/** Creates the validator of a discriminated union, which runs only the validator of the selected option. */
function choiceCheck(name: string, options: readonly Schema[]): FastPathValidator {
  const choices: { tag: unknown; check: FastPathValidator }[] = [];
  for (const option of options) {
    const values = (option._zod.propValues as Record<string, Set<unknown>> | undefined)?.[name];
    if (values === undefined) return acceptNothing;
    const check = fastPathValidator(option);
    for (const tag of values) choices.push({ tag, check });
  }
  return (value) => {
    if (typeof value !== "object" || value === null) return false;
    const tag = (value as Record<string, unknown>)[name];
    // A map would be slower: the tag is a new string each time, and hashing it takes as long as twenty comparisons
    // (30,000 instructions in a request with 41 messages).
    for (let index = 0; index < choices.length; index++) {
      const choice = choices[index];
      if (choice !== undefined && choice.tag === tag) return choice.check(value);
    }
    return false;
  };
}

/** Creates the validator of an object that may have unknown members. Objects that may not go to zod. */
function objectCheck({ shape, catchall }: Definition): FastPathValidator {
  if (catchall === undefined || definitionOf(catchall as Schema).type !== "unknown") return acceptNothing;
  const members = new Map<string, Member>();
  for (const [name, schema] of Object.entries(shape as Record<string, Schema>)) {
    members.set(name, { check: fastPathValidator(schema), isRequired: false });
  }
  // `__proto__` as a member is left to zod.
  members.set("__proto__", { check: acceptNothing, isRequired: false });
  // Reads the few present members, not the many possible ones, and counts the required ones among them.
  let requiredCount: number | undefined;
  return (value) => {
    if (!isPlain(value)) return false;
    // Counted at the first use: only then recursive schemas are complete.
    requiredCount ??= markRequired(members);
    let presentCount = 0;
    for (const name in value) {
      const member = members.get(name);
      if (member === undefined) continue;
      if (!member.check(value[name])) {
        faults?.set(value, name);
        return false;
      }
      if (member.isRequired) presentCount++;
    }
    return presentCount === requiredCount;
  };
}

interface Member {
  check: FastPathValidator;
  isRequired: boolean;
}

function markRequired(members: ReadonlyMap<string, Member>): number {
  let requiredCount = 0;
  for (const [name, member] of members) {
    member.isRequired = name !== "__proto__" && !member.check(undefined);
    if (member.isRequired) requiredCount++;
  }
  return requiredCount;
}

function recordCheck({ keyType, valueType }: Definition): FastPathValidator {
  const [isKey, isValue] = [fastPathValidator(keyType as Schema), fastPathValidator(valueType as Schema)];
  return (value) => {
    if (!isPlain(value)) return false;
    for (const name in value) if (name === "__proto__" || !isKey(name) || !isValue(value[name])) return false;
    return true;
  };
}

/** Returns whether a value is a plain object. One with a `__proto__` member is left to zod. */
function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Creates the validator of a recursive schema at its first use. */
function lazyCheck(getter: () => Schema): FastPathValidator {
  let validator: FastPathValidator | undefined;
  return (value) => (validator ??= fastPathValidator(getter()))(value);
}
