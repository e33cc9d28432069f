/** The prompts, tools and images of the suite. Any model that follows instructions can handle them. */
import type { JsonObject } from "../json/mod.ts";

/** Asks for a single word. */
export const READY = "Answer with the one word ready, and nothing else.";

/** Asks for far more than {@linkcode SHORT} tokens. It works with models that count and with models that repeat it. */
export const LONG =
  "Count in words from one to one hundred and write every number. Begin like this and go on to the end: " +
  "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen";

/** A limit of output tokens that cuts {@linkcode LONG}: the smallest that OpenAI's responses endpoint accepts. */
export const SHORT = 16;

/** Stop sequence for {@linkcode HALTING}. */
export const HALT = "HALT";

/** Asks for words with the stop sequence among them. */
export const HALTING = `Repeat these words, with nothing before or after them: alpha beta ${HALT} gamma delta`;

/** A system prompt. */
export const SYSTEM = "You are a plain machine. You answer in as few words as you can, in lower case.";

/** Makes the model call the first tool. */
export const WEATHER = "What is the weather in Paris? Use get_weather.";

/** Makes the model call both tools. */
export const BOTH =
  'Call both tools now, at once:\ncall:get_weather {"city":"Paris"}\ncall:get_time {"zone":"Europe/Paris"}';

/** A tool in a form that is independent of protocols. */
export interface PlainTool {
  name: string;
  description: string;
  schema: JsonObject;
}

function textMember(name: string): JsonObject {
  return { type: "object", properties: { [name]: { type: "string" } }, required: [name], additionalProperties: false };
}

/** The tools of the suite. */
export const TOOLS: readonly [PlainTool, PlainTool] = [
  { name: "get_weather", description: "The weather in a city", schema: textMember("city") },
  { name: "get_time", description: "The time in a zone", schema: textMember("zone") },
];

/** The member with a text that the arguments of each tool must have. */
export const ARGUMENTS: Readonly<Record<string, string>> = { get_weather: "city", get_time: "zone" };

/** The result of a tool. */
export const RESULT = "18 degrees, light rain";

/** Asks for a {@linkcode PERSON}. */
export const MAKE_PERSON = "Make up a person. Give the name and the age as JSON.";

/**
 * Asks for the same in JSON, so that models that repeat their input answer in JSON, too, even at hosts without
 * structured output.
 */
export const LIKE_THIS = '{"task":"Answer with a JSON object that has these members","name":"Ada","age":36}';

/** A schema that strict modes accept. */
export const PERSON: JsonObject = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};

/** Returns what is wrong with a text that should be a {@linkcode PERSON}; `undefined` if nothing is. */
export function personProblem(text: string): string | undefined {
  try {
    const { name, age, ...others } = Object(JSON.parse(text));
    if (typeof name !== "string") return "no text as name";
    if (!Number.isInteger(age)) return "no integer as age";
    return Object.keys(others).length > 0 ? `more members: ${Object.keys(others).join(", ")}` : undefined;
  } catch {
    return "no JSON";
  }
}

/** Asks about {@linkcode PICTURE}. */
export const SEE = "Which colour is this picture? One word.";

/** A red PNG of 64 by 64 pixels, base64. */
export const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsEty/aMYywi+hcEKLNO+FgEBAQEBAQEBAQEBAQEB" +
  "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQGBywLKp0DxvxLbjwAAAABJRU5ErkJggg==";

/** A member unknown to all protocols. */
export const UNKNOWN = "x_conform_unknown";

/** A model that does not exist. */
export const NO_MODEL = "conform/there-is-no-such-model";

/** An invalid key, which no answer may repeat. */
export const BAD_KEY = "sk-conform-0000-this-is-no-key-0000";
