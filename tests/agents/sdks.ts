/** SDKs and the programs in `programs/` that use them. */

/** An SDK. */
export interface Sdk {
  name: string;
  /** Packages to install: of npm, or of PyPI if the program is in Python. */
  packages: readonly string[];
  /** A file of `programs/`. */
  program: string;
}

/** The AI SDK with all its providers that a gateway can play. */
function aiSdk(major: number, [ai, openai, anthropic, compatible, google]: readonly string[]): Sdk {
  return {
    name: `AI SDK ${major}`,
    packages: [
      `ai@${ai}`,
      `@ai-sdk/openai@${openai}`,
      `@ai-sdk/anthropic@${anthropic}`,
      `@ai-sdk/openai-compatible@${compatible}`,
      `@ai-sdk/google@${google}`,
      "zod@4.6.7",
    ],
    program: "ai_sdk.mjs",
  };
}

/** All tested SDKs. */
export const SDKS: readonly Sdk[] = [
  aiSdk(5, ["5.0.277", "2.0.130", "2.0.112", "1.0.61", "2.0.108"]),
  aiSdk(6, ["6.0.324", "3.0.141", "3.0.140", "2.0.92", "3.0.141"]),
  aiSdk(7, ["7.0.173", "4.0.118", "4.0.105", "3.0.92", "4.0.121"]),
  {
    name: "LangChain",
    packages: [
      "langchain@1.5.14",
      "@langchain/core@1.4.0",
      "@langchain/openai@1.6.0",
      "@langchain/anthropic@1.5.11",
      "@langchain/google-genai@2.3.2",
    ],
    program: "langchain.mjs",
  },
  { name: "@google/genai", packages: ["@google/genai@3.1.0"], program: "genai.mjs" },
  { name: "Python SDKs", packages: ["openai==3.54.0", "anthropic==2.12.0"], program: "sdks.py" },
  {
    name: "LangChain for Python",
    packages: ["langchain==1.4.7", "langchain-openai==1.7.3", "langchain-anthropic==1.7.7"],
    program: "langchain_models.py",
  },
];
