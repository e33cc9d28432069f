/** Requests and refusals of the parts that have a model of their own: images, embeddings and reranking. */
import type { JsonObject } from "../json/mod.ts";
import { type Checks, Skip, type SuitePart } from "./check.ts";
import { checkError } from "./http_checks.ts";
import { BAD_KEY, NO_MODEL } from "./prompts.ts";
import type { HttpAnswer, SuiteContext } from "./suite_context.ts";

/** A part of the suite with a model of its own. */
export interface ModelPart {
  part: SuitePart;
  /** Kind of the model, as in the command-line option `--image-model`. */
  model: "image" | "embedding" | "rerank";
  /** Members of its requests, except for the model. */
  members: JsonObject;
}

/** Returns the body of a valid request, changed by further members. @throws {Skip} if no model was given */
export function bodyOf({ model, members }: ModelPart, { subject }: SuiteContext, more: JsonObject = {}): JsonObject {
  const id = subject[`${model}Model`];
  if (id === undefined) throw new Skip(`no --${model}-model was given`);
  return { model: id, ...members, ...more };
}

/** Returns the answer to a valid request, which is sent once for all checks. */
export function answerOf(form: ModelPart, context: SuiteContext, more: JsonObject = {}): Promise<HttpAnswer> {
  return context.once(
    `${form.part} ${JSON.stringify(more)}`,
    () => context.good({ path: context.path(form.part), body: bodyOf(form, context, more) }),
  );
}

/**
 * Returns checks of requests that must be refused: with a wrong key and with an unknown model, and further ones.
 * @param further for each check, the members of its request and the expected statuses
 */
export function refusalChecks(
  form: ModelPart,
  further: Record<string, [more: (context: SuiteContext) => JsonObject, statuses: number[]]> = {},
): Checks {
  const check = async (context: SuiteContext, more: JsonObject, statuses: number[], key = context.subject.key) => {
    const body = bodyOf(form, context, more);
    checkError({ errors: "openai" }, await context.ask({ path: context.path(form.part), body, key }), statuses);
  };
  return {
    "error.key": (context) => check(context, {}, [401], BAD_KEY),
    "error.model": (context) => check(context, { model: NO_MODEL }, [404, 400]),
    ...Object.fromEntries(
      Object.entries(further).map((
        [id, [more, statuses]],
      ) => [id, (context) => check(context, more(context), statuses)]),
    ),
  };
}
