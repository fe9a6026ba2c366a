//! Pages and mails as their readers get them, for snapshots: lines of text, links with where they lead, fields in
//! brackets, and `⟨…⟩` around what is kept apart from its neighbours, whichever way it is written.

/// The words of a page's body.
pub fn as_read(html: &str) -> String {
    let body = html.split_once("<body").map_or(html, |(_, body)| body);
    let body = body.split_once('>').map_or(body, |(_, body)| body);
    let mut reader = Reader::default();
    let mut parts = body.split('<');
    reader.text(parts.next().unwrap_or_default());
    for part in parts {
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        reader.tag(tag);
        reader.text(text);
    }
    let lines = reader.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines = lines.filter(|line| !matches!(line.as_str(), "" | "-" | "#" | "##" | "###"));
    lines.map(|line| line + "\n").collect()
}

#[derive(Default)]
struct Reader {
    out: String,
    /// The links that are open.
    leads_to: Vec<String>,
    in_picture: bool,
}

impl Reader {
    fn text(&mut self, text: &str) {
        if !self.in_picture {
            self.out.push_str(&unescaped(text).replace('\n', " "));
        }
    }

    fn tag(&mut self, tag: &str) {
        let name = tag.split_whitespace().next().unwrap_or_default();
        self.in_picture &= name != "/svg";
        if self.in_picture {
            return;
        }
        match name {
            "svg" => {
                self.in_picture = true;
                self.out.push_str(&format!(
                    "\n[picture: {}]\n",
                    attribute(tag, "aria-label").unwrap_or_default()
                ));
            }
            "a" => self.leads_to.push(attribute(tag, "href").unwrap_or_default()),
            "/a" => self.out.push_str(&format!(" → {}", self.leads_to.pop().unwrap_or_default())),
            "bdi" => self.out.push('⟨'),
            "/bdi" => self.out.push('⟩'),
            "input" => self.out.push_str(&input(tag)),
            "button" => self.out.push_str(if tag.contains(" disabled") {
                "\n[button, disabled: "
            } else {
                "\n[button: "
            }),
            "/button" => self.out.push_str("]\n"),
            "option" => self.out.push_str(if tag.contains(" selected") { " [*] " } else { " [ ] " }),
            "h1" => self.out.push_str("\n# "),
            "h2" => self.out.push_str("\n## "),
            "h3" => self.out.push_str("\n### "),
            "li" => self.out.push_str("\n- "),
            "td" | "th" => self.out.push_str(" | "),
            "dd" => self.out.push_str(": "),
            "/label" | "/h1" | "/h2" | "/h3" | "/li" | "tr" | "/tr" | "p" | "/p" | "dt" | "/dd" | "form"
            | "label" | "legend" | "/legend" | "nav" | "/nav" | "br" | "/div" | "caption" | "/caption"
            | "summary" | "/summary" | "/ul" => {
                self.out.push('\n');
            }
            _ => {}
        }
    }
}

/// A field with what stands in it. The secret of a form differs each time.
fn input(tag: &str) -> String {
    let of = |name| attribute(tag, name).unwrap_or_default();
    let value = if of("name") == "csrf" { "…".to_owned() } else { of("value") };
    let flags =
        ["checked", "disabled", "required"].into_iter().filter(|flag| tag.contains(&format!(" {flag}")));
    let flags: String = flags.map(|flag| format!(" {flag}")).collect();
    format!("\n[{}={value}{flags}] ", of("name"))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(unescaped(rest.split('"').next()?))
}

fn unescaped(text: &str) -> String {
    let pairs =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/"), ("&amp;", "&")];
    pairs.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
