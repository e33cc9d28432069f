/** Parts of the suite whose requests name a model of their own, in OpenAI's form. */
import type { JsonObject } from "../json/mod.ts";
import { type Checks, Skip, type SuitePart } from "./check.ts";
import { checkError } from "./http_checks.ts";
import { BAD_KEY, NO_MODEL } from "./prompts.ts";
import type { HttpAnswer, SuiteContext } from "./suite_context.ts";

/** A part, the command-line option of its model, and the members of its requests. */
export interface ModelPart {
  part: SuitePart;
  model: "image" | "embedding" | "rerank";
  members: JsonObject;
}

/** A request body. @throws {Skip} without a model */
export function bodyOf({ model, members }: ModelPart, { subject }: SuiteContext, more: JsonObject = {}): JsonObject {
  const id = subject[`${model}Model`];
  if (id === undefined) throw new Skip(`no --${model}-model was given`);
  return { model: id, ...members, ...more };
}

/** The answer to a valid request, sent once. */
export function answerOf(form: ModelPart, context: SuiteContext, more: JsonObject = {}): Promise<HttpAnswer> {
  return context.once(
    `${form.part} ${JSON.stringify(more)}`,
    () => context.good({ path: context.path(form.part), body: bodyOf(form, context, more) }),
  );
}

/** Checks of refused requests: those of every part, and for each further one its members and the expected statuses. */
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
