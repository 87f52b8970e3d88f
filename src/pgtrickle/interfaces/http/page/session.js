// Signing in: the token is exchanged for a cookie that scripts cannot read.

import { get, post, Problem, remove } from "./api.js";
import { h, put } from "./dom.js";
import { problemNotice, toast } from "./notices.js";

// `pgtrickle run` prints an address with a code that signs in once; people can also put their token there
const IN_ADDRESS = /^#(login|token)=(.+)$/;

class Session extends EventTarget {
  isSignedIn = false;
  hasStarted = false;

  get hasKeyInAddress() {
    return IN_ADDRESS.test(location.hash);
  }

  /** Ask who we are. A code that works once, or a token, behind the # of the address signs in and leaves the address. */
  async start() {
    const key = location.hash.match(IN_ADDRESS);
    if (key) {
      history.replaceState(null, "", location.pathname + location.search);
      const content = { [key[1] === "login" ? "code" : "token"]: decodeURIComponent(key[2]) };
      await post("/session", content).catch((problem) => toast(problem, true));
    }
    this.hasStarted = true;
    const state = await get("/session").catch(() => ({ signed_in: false }));
    this.#set(state.signed_in);
  }

  async signIn(token) {
    await post("/session", { token });
    this.#set(true);
  }

  async signOut() {
    await remove("/session");
    this.#set(false);
  }

  #set(isSignedIn) {
    const isNew = this.isSignedIn !== isSignedIn;
    this.isSignedIn = isSignedIn;
    if (isNew) this.dispatchEvent(new Event("change"));
  }
}

export const session = new Session();

/** The button in the bar: sign in, or sign out. */
export function signInButton() {
  const button = h("button", { class: "plain", onclick: () => (session.isSignedIn ? session.signOut() : askForToken()) });
  const show = () => {
    put(button, session.isSignedIn ? "Sign out" : "Sign in");
    button.title = session.isSignedIn ? "You can see rows and change things." : "Needed to see rows and to change anything.";
  };
  session.addEventListener("change", show);
  show();
  return button;
}

/** Ask for the token. Resolves to whether the person is signed in afterwards. */
export function askForToken() {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", autocomplete: "current-password", required: true, "aria-label": "Token" });
    const place = h("div", {});
    const dialog = h("dialog", { "aria-labelledby": "sign-in" },
      h("form", { onsubmit: submit },
        h("h2", { id: "sign-in" }, "Sign in"),
        h("p", { class: "soft" }, "Rows and changes need the token of this sidecar. ", h("code", { class: "nowrap" }, "pgtrickle run --http"), " prints where it is."),
        h("label", { class: "field" }, h("span", {}, "Token"), field),
        place,
        h("div", { class: "actions" },
          h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
          h("button", { class: "primary" }, "Sign in"))));
    async function submit(event) {
      event.preventDefault();
      try {
        await session.signIn(field.value);
        dialog.close();
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        put(place, problemNotice(error));
        field.select();
      }
    }
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(session.isSignedIn);
    });
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
  });
}

/** Do something that needs the token; ask for it first if it is missing. */
export async function withToken(action) {
  if (session.isSignedIn || (await askForToken())) await action();
}

/** What stands where rows would be, while nobody is signed in. */
export function signInNotice(what) {
  return h("div", { class: "empty" }, h("p", {}, `Sign in to see ${what}.`), h("button", { onclick: askForToken }, "Sign in"));
}
