/* SPDX-License-Identifier: MIT */
#include "show.h"

#include "../json.h"

#include <string.h>

static const char *vendor_name(enum gpu_vendor vendor)
{
    return vendor == GPU_NVIDIA ? "NVIDIA" : vendor == GPU_AMD ? "AMD" : NULL;
}

/* ---- text ---- */

static void put_machine(FILE *out, const struct doctor *d)
{
    const struct topology *t = d->t;
    if (d->vendor == GPU_NONE)
        fprintf(out, "No GPU here: what follows is about the machine.\n\n");
    else if (t->list.n == 0)
        fprintf(out, "%s: no GPU that this process may use.\n\n", vendor_name(d->vendor));
    else
        fprintf(out, "%u x %s%s%s\n\n", t->list.n,
                t->gpu[0].name[0] ? t->gpu[0].name : vendor_name(d->vendor),
                t->driver[0] ? ", driver " : "", t->driver);
}

static void put_finding(FILE *out, const struct finding *f, bool colour)
{
    static const char *const colours[VERDICTS_N] = {"32", "33", "1;31", "36"};
    const int verdict_width = 14, name_width = 11;
    const char *verdict = verdict_name(f->verdict);
    if (colour)
        fprintf(out, "\033[%sm%-*s\033[0m", colours[f->verdict], verdict_width, verdict);
    else
        fprintf(out, "%-*s", verdict_width, verdict);
    fprintf(out, "  %-*s  %s\n", name_width, f->check->name, f->evidence);
    if (f->consequence)
        fprintf(out, "%*s  so: %s\n", verdict_width + name_width + 2, "", f->consequence);
    if (f->fix)
        fprintf(out, "%*s  do: %s\n", verdict_width + name_width + 2, "", f->fix);
}

void show_text(FILE *out, const struct doctor *d, bool colour)
{
    put_machine(out, d);
    for (unsigned i = 0; i < d->n; i++)
        put_finding(out, &d->finding[i], colour);
    fprintf(out, "\n%s: %u ok, %u warning, %u broken, %u could not look\n",
            verdict_name(doctor_verdict(d)), doctor_count(d, VERDICT_OK),
            doctor_count(d, VERDICT_WARNING), doctor_count(d, VERDICT_BROKEN),
            doctor_count(d, VERDICT_BLIND));
}

/* ---- JSON ---- */

static void put_member(FILE *out, const struct finding *f)
{
    struct json_members m = {.out = out, .before = "{", .between = ", "};
    json_text(&m, "check", f->check->name);
    json_text(&m, "about", f->check->about);
    json_text(&m, "verdict", verdict_name(f->verdict));
    json_text(&m, "evidence", f->evidence);
    json_text(&m, "consequence", f->consequence);
    json_text(&m, "fix", f->fix);
    fputc('}', out);
}

void show_json(FILE *out, const struct doctor *d)
{
    struct json_members m = {.out = out, .before = "{", .between = ",\n "};
    json_text(&m, "verdict", verdict_name(doctor_verdict(d)));
    json_number(&m, "ok", true, doctor_count(d, VERDICT_OK));
    json_number(&m, "warning", true, doctor_count(d, VERDICT_WARNING));
    json_number(&m, "broken", true, doctor_count(d, VERDICT_BROKEN));
    json_number(&m, "could_not_look", true, doctor_count(d, VERDICT_BLIND));
    json_text(&m, "vendor", vendor_name(d->vendor));
    json_number(&m, "gpus", true, d->t->list.n);
    json_text(&m, "model", d->t->list.n ? d->t->gpu[0].name : NULL);
    json_text(&m, "driver", d->t->driver);
    json_name(&m, "findings");
    for (unsigned i = 0; i < d->n; i++) {
        fputs(i ? ",\n  " : "[\n  ", out);
        put_member(out, &d->finding[i]);
    }
    fputs(d->n ? "\n ]}\n" : "[]}\n", out);
}
