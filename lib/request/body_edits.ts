/** Edits the members of a request body, in its text and in its value. */
import {
  type Json,
  type JsonPath,
  removePaths,
  scanMembers,
  spliceMembers,
  withoutPaths,
  writeJson,
} from "../json/mod.ts";
import type { JsonBody } from "../server/parse_body.ts";

/** Collects edits of a body, and applies them to its text and its value. */
export class BodyEdits {
  readonly #body: JsonBody;
  /** New values of members; `undefined` for a member that is removed. */
  readonly #values: Record<string, Json | undefined> = {};
  /** New JSON texts of the same members. */
  readonly #texts: Record<string, string | undefined> = {};

  constructor(body: JsonBody) {
    this.#body = body;
  }

  remove(name: string): void {
    this.#values[name] = undefined;
    this.#texts[name] = undefined;
  }

  set(name: string, value: Json): void {
    this.#values[name] = value;
    this.#texts[name] = writeJson(value);
  }

  /** Removes values inside a member. The text of everything else in it stays as the client wrote it. */
  cut(name: string, cuts: readonly JsonPath[]): void {
    const { text, members, value } = this.#body;
    const { start, end } = members.find((member) => member.name === name) ?? { start: 0, end: 0 };
    this.#values[name] = withoutPaths({ [name]: value[name] }, cuts.map((cut) => [name, ...cut]))[name];
    this.#texts[name] = removePaths(text.slice(start, end), cuts);
  }

  /** Returns the edited body; the same body if there are no edits. */
  apply(): JsonBody {
    if (Object.keys(this.#texts).length === 0) return this.#body;
    const value = Object.fromEntries(
      Object.entries({ ...this.#body.value, ...this.#values }).filter(([, value]) => value !== undefined),
    );
    return { ...scanMembers(spliceMembers(this.#body, this.#texts)), value };
  }
}
