/* SPDX-License-Identifier: MIT */
#include "completion.h"

#include "../../proto/base.h"
#include "commands.h"
#include "topics.h"

#include <string.h>

#define BRIEF_BYTES 64

/* The first sentence of a help text, cut at a word; returns buf. */
static const char *brief(const char *help, char buf[BRIEF_BYTES])
{
    size_t n = strlen(help);
    const char *end = strstr(help, ". ");
    if (end)
        n = (size_t)(end - help);
    else if (n > 0 && help[n - 1] == '.')
        n--;
    if (n >= BRIEF_BYTES) {
        n = BRIEF_BYTES - 4;
        while (n > 0 && help[n] != ' ')
            n--;
        snprintf(buf, BRIEF_BYTES, "%.*s...", (int)n, help);
    } else {
        snprintf(buf, BRIEF_BYTES, "%.*s", (int)n, help);
    }
    return buf;
}

/* Text between single quotes: those of its own, and the characters in `special`, are escaped. */
static void put_quoted(FILE *out, const char *text, const char *quote, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, out);
        else
            fprintf(out, strchr(special, *text) ? "\\%c" : "%c", *text);
    }
}

static bool is_path(const struct field *field)
{
    return field->arg && (strcmp(field->arg, "DIR") == 0 || strcmp(field->arg, "FILE") == 0);
}

static void put_choices(FILE *out, const struct field *field)
{
    for (size_t i = 0; field->choices[i]; i++)
        fprintf(out, i ? " %s" : "%s", field->choices[i]);
}

/* "-n<between>--nproc-per-node<between>--np": all names of an option. */
static void put_names(FILE *out, const struct field *field, const char *between)
{
    if (field->letter)
        fprintf(out, "-%c%s", field->letter, between);
    fprintf(out, "--%s", field->name);
    for (const char *p = field->aliases; p && *p; p += strspn(p, " ")) {
        int n = (int)strcspn(p, " ");
        fprintf(out, "%s--%.*s", between, n, p);
        p += n;
    }
}

/* Names of all options whose value may stand in the next word. */
static void put_takers(FILE *out)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (!FIELDS[i].arg)
            continue;
        put_names(out, &FIELDS[i], " ");
        fputc(' ', out);
    }
}

static void put_help_topics(FILE *out)
{
    char word[TOPIC_BYTES];
    const char *name;
    for (size_t i = 0; (name = topic_name(i, word)); i++)
        fprintf(out, "%s ", name);
    for (const struct command *command = COMMANDS; command->name; command++)
        fprintf(out, "%s ", command->name);
    for (size_t i = 0; i < FIELDS_N; i++)
        fprintf(out, "%s%s", FIELDS[i].name, i + 1 < FIELDS_N ? " " : "");
}

/* ---- bash ---- */

static const char BASH_HEAD[] =
    "# bash completion for launch(1); made by: launch help --bash\n"
    "_launch()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} i=1 word option=\n"
    "    COMPREPLY=()\n"
    "    while ((i < COMP_CWORD)); do # bash makes three words of --x=v\n"
    "        word=${COMP_WORDS[i]//_/-}\n"
    "        case $word in\n"
    "        --) ((i++)); break ;;\n"
    "        -*)\n"
    "            option=$word\n"
    "            if [[ ${COMP_WORDS[i + 1]-} == = ]]; then ((i += 3))\n"
    "            elif [[ $_launch_takers == *\" $word \"* ]]; then ((i += 2))\n"
    "            else ((i++)); fi ;;\n"
    "        *) break ;;\n"
    "        esac\n"
    "    done\n"
    "    if ((i < COMP_CWORD)); then\n"
    "        if [[ $i$word == 1help ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$_launch_topics\" -- \"$cur\")\n"
    "        else\n"
    "            compopt -o bashdefault -o default\n"
    "        fi\n"
    "    elif ((i > COMP_CWORD)); then\n"
    "        [[ $cur != = ]] || cur=\n"
    "        case $option in\n";

static const char BASH_TAIL[] =
    "        *) compopt -o bashdefault -o default ;;\n"
    "        esac\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_launch_options\" -- \"$cur\")\n"
    "        [[ ${COMPREPLY-} != *= ]] || compopt -o nospace\n"
    "    else\n"
    "        compopt -o filenames\n"
    "        ((i > 1)) || mapfile -t COMPREPLY < <(compgen -W \"$_launch_commands\" -- \"$cur\")\n"
    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        [[ -z $cur ]] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "
    "\"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -F _launch launch\n";

void completion_print_bash(FILE *out)
{
    fputs(BASH_HEAD, out);
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (!FIELDS[i].arg || !(FIELDS[i].choices || is_path(&FIELDS[i])))
            continue;
        fputs("        ", out);
        put_names(out, &FIELDS[i], " | ");
        if (FIELDS[i].choices) {
            fputs(") mapfile -t COMPREPLY < <(compgen -W '", out);
            put_choices(out, &FIELDS[i]);
            fputs("' -- \"$cur\") ;;\n", out);
        } else {
            fprintf(out,
                    ") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -%c -- \"$cur\") "
                    ";;\n",
                    FIELDS[i].arg[0] == 'D' ? 'd' : 'f');
        }
    }
    fputs(BASH_TAIL, out);
    fputs("_launch_commands='", out);
    for (const struct command *command = COMMANDS; command->name; command++)
        fprintf(out, "%s ", command->name);
    fputs("'\n_launch_topics='", out);
    put_help_topics(out);
    fputs("'\n_launch_takers=' ", out);
    put_takers(out);
    fputs("'\n_launch_options='--help --version", out);
    for (size_t i = 0; i < FIELDS_N; i++)
        fprintf(out, " --%s%s", FIELDS[i].name, FIELDS[i].arg ? "=" : "");
    fputs("'\n", out);
}

/* ---- zsh ---- */

static void put_zsh_option(FILE *out, const struct field *field, bool letter)
{
    char text[BRIEF_BYTES];
    fputs("        '", out);
    if (letter)
        fprintf(out, "-%c%s", field->letter, field->arg ? "+" : "");
    else
        fprintf(out, "--%s%s", field->name, field->arg ? "=" : "");
    fputc('[', out);
    put_quoted(out, brief(field->help, text), "'\\''", "[]\\:");
    fputc(']', out);
    if (field->arg) {
        fprintf(out, ":%s:", field->arg);
        if (field->choices) {
            fputc('(', out);
            put_choices(out, field);
            fputc(')', out);
        } else if (is_path(field)) {
            fputs(field->arg[0] == 'D' ? "_files -/" : "_files", out);
        }
    }
    fputs("' \\\n", out);
}

void completion_print_zsh(FILE *out)
{
    char text[BRIEF_BYTES];
    fputs("#compdef launch\n"
          "# zsh completion for launch(1); made by: launch help --zsh\n"
          "_launch_program()\n"
          "{\n"
          "    local -a commands=(\n",
          out);
    for (const struct command *command = COMMANDS; command->name; command++) {
        fprintf(out, "        '%s:", command->name);
        put_quoted(out, brief(command->summary, text), "'\\''", "\\:");
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    _describe -t commands command commands\n"
          "    _command_names -e\n"
          "    _files\n"
          "}\n"
          "_launch_rest()\n"
          "{\n"
          "    if [[ $words[1] == help ]]; then\n"
          "        compadd -- ",
          out);
    put_help_topics(out);
    fputs("\n    else\n"
          "        _normal\n"
          "    fi\n"
          "}\n"
          "_launch()\n"
          "{\n"
          "    _arguments -S -A '-*' \\\n",
          out);
    for (size_t i = 0; i < FIELDS_N; i++) {
        put_zsh_option(out, &FIELDS[i], false);
        if (FIELDS[i].letter)
            put_zsh_option(out, &FIELDS[i], true);
    }
    fputs(
        "        '(- *)'{-h,--help}'[help]' '(- *)'{-V,--version}'[the version]' \\\n"
        "        '1:program:_launch_program' '*::argument:_launch_rest'\n"
        "}\n"
        "if [[ $funcstack[1] == _launch ]]; then _launch \"$@\"; else compdef _launch launch; fi\n",
        out);
}

/* ---- fish ---- */

static const char FISH_HEAD[] =
    "# fish completion for launch(1); made by: launch help --fish\n"
    "function __launch_at_options # no program has been named yet\n"
    "    set -l words (commandline -opc)\n"
    "    set -l skip 1\n"
    "    for word in $words\n"
    "        if test $skip = 1\n"
    "            set skip 0\n"
    "            continue\n"
    "        end\n"
    "        switch $word\n"
    "            case '--'\n"
    "                return 1\n"
    "            case '-*'\n"
    "                contains -- $word $__launch_takers; and set skip 1\n"
    "            case '*'\n"
    "                return 1\n"
    "        end\n"
    "    end\n"
    "    return 0\n"
    "end\n";

static void put_fish_text(FILE *out, const char *help)
{
    char text[BRIEF_BYTES];
    fputs(" -d '", out);
    put_quoted(out, brief(help, text), "\\'", "\\");
    fputs("'\n", out);
}

void completion_print_fish(FILE *out)
{
    fputs(FISH_HEAD, out);
    fputs("set -g __launch_takers ", out);
    put_takers(out);
    fputc('\n', out);
    for (size_t i = 0; i < FIELDS_N; i++) {
        const struct field *field = &FIELDS[i];
        fprintf(out, "complete -c launch -n __launch_at_options -l %s", field->name);
        if (field->letter)
            fprintf(out, " -s %c", field->letter);
        if (field->arg)
            fputs(is_path(field) ? " -r" : " -x", out);
        if (field->arg && field->choices) {
            fputs(" -a '", out);
            put_choices(out, field);
            fputc('\'', out);
        }
        put_fish_text(out, field->help);
    }
    fputs("complete -c launch -n __launch_at_options -s h -l help -d 'Help'\n"
          "complete -c launch -n __launch_at_options -s V -l version -d 'The version'\n"
          "complete -c launch -n __launch_at_options -a '(__fish_complete_command)'\n",
          out);
    for (const struct command *command = COMMANDS; command->name; command++) {
        fprintf(out, "complete -c launch -n __launch_at_options -a %s", command->name);
        put_fish_text(out, command->summary);
    }
    fputs("complete -c launch -n '__fish_seen_subcommand_from help' -f -a '", out);
    put_help_topics(out);
    fputs("'\n", out);
}
